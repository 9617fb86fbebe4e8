"""Short delays at random steps: what the step makes of them tells whether a place of the loop is critical."""
