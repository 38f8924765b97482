"""The results of the base that a change is compared with.

A suite takes the newest stored run whose fingerprints fit (`stored`), of the data branch
(`data_branch`, with one file for each run: `run_files`) or of a committed results file; a suite
that no source has runs on base now. `trends` is the development over the runs of the data
branch."""
