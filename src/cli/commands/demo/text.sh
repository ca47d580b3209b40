# Small filters for texts. The agent adds one more in each iteration.
