"""The results of the base that a change is compared with.

A suite takes the newest stored run whose fingerprints fit (`stored`), from the data branch
(`data_branch`, with one file for each run: `run_files`) or from a committed results file; a suite
without stored results runs on base now. `trends` is the development over the runs of the data
branch."""
