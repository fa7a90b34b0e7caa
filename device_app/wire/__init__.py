"""All that both ends must agree on, bit for bit; imports nothing else of ours."""
