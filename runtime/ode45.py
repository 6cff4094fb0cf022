"""`ode45`: the solution of a differential equation, by adaptive steps of Dormand and Prince.

This file is read twice: NumPy runs it, and the compiler makes it part of the layers that call `ode45`. Hence it is
written in the language of layer files. `layerc.runtime.ODE` takes its steps from here, too.

The steps are found in s = (t - t0) / (t1 - t0). Their lengths are powers of 2 ** (1/8) times the first, cut at s = 1:
as functions of y0, t0, t1 and theta they are constant almost everywhere. So the derivative of the solution that is
computed is that of its steps, with the lengths held fixed.
"""

import numpy as np

from layerc.runtime.derivatives import captured, pull, with_backward, with_derivative

# Dormand and Prince 1980: stage i is taken at time NODES[i], after WEIGHTS[i] of the stages before; the last is the
# solution. ERRORS: the difference from the solution of order 4.
NODES = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
WEIGHTS = (
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (1 / 5, 0.0, 0.0, 0.0, 0.0, 0.0),
    (3 / 40, 9 / 40, 0.0, 0.0, 0.0, 0.0),
    (44 / 45, -56 / 15, 32 / 9, 0.0, 0.0, 0.0),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0.0, 0.0),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0.0),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
ERRORS = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
FIRST = 1 / 128  # the length of the first step that is tried


def ode45(f, t0, t1, y0, *theta, rtol=1e-6, atol=1e-9, gradient="direct", max_steps=10_000):
    """y(t1) for dy/dt = f(t, y, *theta), y(t0) = y0: in y0's shape.

    The estimated error of a step stays within atol + rtol |y|, in the root mean square over y (Hairer, Norsett and
    Wanner 1993, II.4). t1 may lie before t0. Gradients go to y0, t0, t1, theta, and to what f reads of the function
    around it. gradient="direct": of the steps that were taken; "adjoint": by integrating the adjoint equation back from
    t1 (Pontryagin; Chen et al. 2018), which keeps no step, right to the tolerances. AssertionError where more than
    max_steps steps are tried.
    """
    assert callable(f), "ode45 takes a function first: f(t, y, *theta)"
    assert gradient in ("direct", "adjoint"), 'gradient is "direct" or "adjoint"'
    if gradient == "direct":
        y, _ = solve(f, t0, t1, y0, theta, _taken, (), rtol, atol, max_steps)
        return y
    y, _ = solve(f, t0, t1, y0, theta, _passed, (), rtol, atol, max_steps)
    around = captured(f, t0, y0, *theta)
    return with_backward(y, _adjoint, (t0, t1, y0, theta, around), (f, rtol, atol, max_steps))


def solve(f, t0, t1, y0, theta, take, kept, rtol, atol, max_steps):
    """y(t1), and `kept` after all steps.

    A round takes the step that was found, y, kept = take(f, nodes, weights, t, dt, y, found, stages, theta, kept), and
    finds the next. So the search is over when a step is taken: its derivative need not search again. The first step
    taken has length 0.
    """
    span = t1 - t0
    y = np.asarray(1.0 * y0)
    found, slope = 1.0 * y, 1.0 * f(t0, y, *theta)
    assert np.shape(slope) == np.shape(y), "f gives dy/dt, which has the shape of y"
    nodes, weights = np.array(NODES, dtype=y.dtype), np.array(WEIGHTS, dtype=y.dtype)
    errors = np.array(ERRORS, dtype=y.dtype)
    stages = np.zeros((7,) + np.shape(y), dtype=y.dtype)
    s, h, trial, trials = 0.0, 0.0, FIRST, 0
    going = True
    while going:
        y, kept = take(f, nodes, weights, t0 + s * span, h * span, y, found, stages, theta, kept)
        s += h
        fits = s >= 1
        going = not fits
        while not fits and trials < max_steps:
            h = min(trial, 1 - s)
            dt = h * span
            found, stages = attempt(f, nodes, weights, t0 + s * span, dt, y, slope, theta)
            size = error_size(dt * np.tensordot(errors, stages, 1), y, found, rtol, atol)
            fits = size <= 1
            trial = h * growth(size)
            trials += 1
        assert fits, "ode45 cannot follow the solution to t1 within max_steps"
        going = going and fits
        slope = 1.0 * stages[6]
    return y, kept


def attempt(f, nodes, weights, t, dt, y, slope, theta):
    """One step from y, where dy/dt is `slope`: y after it, and dy/dt at its stages, (7, *y.shape)."""
    stages = np.empty((7,) + np.shape(y), dtype=y.dtype)
    stages[0] = slope
    after = 1.0 * y
    for i in range(1, 7):
        after = y + dt * np.tensordot(weights[i, :i], stages[:i], 1)
        stages[i] = f(t + nodes[i] * dt, after, *theta)
    return after, stages


def error_size(error, y, after, rtol, atol):
    """The error of a step in units of what is allowed: one of size 1 just passes."""
    scale = atol + rtol * np.maximum(np.abs(y), np.abs(after))
    return np.sqrt(np.sum(np.square(error / scale)) / max(np.size(y), 1))


def growth(size):
    """How much longer than a step with this error the next should be: a power of 2 ** (1/8) in 0.2 ... 10."""
    within = np.fmax(np.fmin(size, 1e6), 1e-6)
    factor = np.clip(0.9 * within**-0.2, 0.2, 10.0)
    return 2.0 ** (np.floor(8 * np.log2(factor)) / 8)


def _taken(f, nodes, weights, t, dt, y, found, stages, theta, kept):
    return with_derivative(found, _step(f, nodes, weights, t, dt, y, theta)), kept


def _passed(f, nodes, weights, t, dt, y, found, stages, theta, kept):
    return found, kept


def _step(f, nodes, weights, t, dt, y, theta):
    """What `attempt` makes of y, without the slope there: for its derivative."""
    stages = np.empty((6,) + np.shape(y), dtype=y.dtype)
    for i in range(6):
        stages[i] = f(t + nodes[i] * dt, y + dt * np.tensordot(weights[i, :i], stages[:i], 1), *theta)
    return y + dt * np.tensordot(weights[6], stages, 1)


def _adjoint(t0, t1, y0, theta, around, f, rtol, atol, max_steps, y, dy):
    """The gradients of ode45: a = dL/dy goes back with y, da/dt = -a df/dy; those of theta are integrals of a df/dtheta
    over the steps that y and a take, whose lengths they have no say in (Kidger et al. 2021)."""

    def back(t, z, *theta):
        y, a = np.copy(z[0]), np.copy(z[1])
        return np.stack([f(t, y, *theta), -pull(f, a, (t, y, *theta))[1]])

    def take(_, nodes, weights, t, dt, z, found, stages, theta, kept):
        for i in range(6):
            at = z + dt * np.tensordot(weights[i, :i], stages[:i], 1)
            y, a = np.copy(at[0]), np.copy(at[1])
            slopes = pull(f, a, (t + nodes[i] * dt, y, *theta), around)[2:]
            kept = [k - (dt * weights[6, i]) * slope for k, slope in zip(kept, slopes)]
        return found, kept

    zeros = [np.zeros(np.shape(p), dtype=y.dtype) for p in (*theta, *around)]
    z, sums = solve(back, t1, t0, np.stack([y, dy]), theta, take, zeros, rtol, atol, max_steps)
    d_t0 = -np.sum(z[1] * f(t0, z[0], *theta))
    d_t1 = np.sum(dy * f(t1, y, *theta))
    return d_t0, d_t1, z[1], sums[: len(theta)], sums[len(theta) :]
