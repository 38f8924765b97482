"""The view that all reports show: a review, classified and worded once."""
