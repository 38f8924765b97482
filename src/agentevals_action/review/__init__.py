"""The review of a change: from an event and its settings to the decision of the gate."""
