"""Replies kept between runs."""
