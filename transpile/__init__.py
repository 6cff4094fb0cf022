"""Source text -> typed program -> loop nests -> C. Knows nothing of gradients, packages or the runtime."""
