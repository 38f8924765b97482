import sys

prompt = sys.argv[1]
if "outage" in prompt:
    sys.exit("503 Service Unavailable")
print("agent:", prompt)
