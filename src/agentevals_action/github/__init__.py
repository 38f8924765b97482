"""The code hosts: one file each."""
