"""EVAL.yaml and targets.yaml to the model, with a line for everything."""
