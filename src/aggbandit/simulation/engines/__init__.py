"""How episodes are played: the plain engine for any learner, fused engines for those that have one."""
