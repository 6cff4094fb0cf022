"""Random programs of the subset, what must hold for them, and the reduction of those for which it does not.

scope       the variables that a program has at a place, and how extents are written there
expressions expressions for a wanted shape, by productions: those of elementwise and arrays
statements  assignments, stores, loops, branches, lists, helpers
classes     a program as a class layer: fields, states
programs    a whole layer file, and arguments for it
oracle      NumPy against central differences; failures
second      the gradient of a gradient, of every fourth program
compiled    many programs in one library, against NumPy
mutations   ill-typed programs, made of well-typed ones
shrink      a smaller program that fails in the same way
"""
