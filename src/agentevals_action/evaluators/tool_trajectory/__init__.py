"""The `tool_trajectory` evaluator: the tool calls are compared with those expected."""
