"""Many runs: what to play, playing it, keeping what came out."""
