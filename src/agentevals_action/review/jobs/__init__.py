"""What a job of a workflow does: a review, a shard, a merge, a publication of claims."""
