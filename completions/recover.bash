eval "$(COMPLETE=bash recover)"
