"""The results of the base that a change is compared with.

Sources (`base.py` is their interface): `auto` asks all others in order; `branch` reads the results
that the default branch stored on a branch (`history*` are the files there, `ancestry` the commits
to look for), `file` those of a committed results file, `rerun` runs base now. `stored_run` makes
stored results one run."""
