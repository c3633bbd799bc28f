"""Sessions: perform the effects of the loop, with approvals, tools and the model."""
