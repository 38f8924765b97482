"""OTLP, the protocol of OpenTelemetry: requests and files as spans."""
