"""Why a run is slow, what to change, and what that will gain."""
