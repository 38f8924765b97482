"""The results of the base that a change is compared with.

Two sources (`base.py` is their interface): `stored` takes the newest run whose fingerprints fit, of
the data branch (`data_branch`, with one file for each run: `run_files`) or of a committed results
file; `rerun` runs base now. `auto` asks both. `stored_run` makes stored results one run of base,
`trends` is the development over the runs of the data branch."""
