import sys

print("agent:", sys.argv[1])
