"""A review on several machines: the plan, the shards, and the merge of their results."""
