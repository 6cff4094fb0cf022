import math
import numpy as np
from layerc import Param, layer, real, i64, bool_

N = 3


@layer
def statements(x: real["N"]):
    try:  # E statement: Try is not part
        y = x
    except ValueError:
        y = -x
    with x as z:  # E statement: With is not part
        y = z
    raise ValueError("no")  # E statement: Raise is not part
    global N  # E statement: Global is not part
    import math  # E statement: Import is not part
    print(x)  # E unsupported: print
    x + 1  # E statement: no effect
    for i in range(3):  # E statement: else on a loop
        y = x
    else:  # (the else belongs to the for)
        y = -x
    yield x  # E
    return x


@layer
def loops(x: real["N"]):
    for i in range(0.5):  # E type: range takes integers
        x[i] = 1
    for i in x.shape[0]:  # E type: cannot loop over a scalar
        x[i] = 1
    for i in range(3, 1, 0):  # E type: step of a range cannot be zero
        x[i] = 1
    while True:  # E statement: this loop never ends
        x[0] = 1
    while x > 0:  # E type: truth of an array
        x = x - 1
    break  # E syntax: break outside a loop
    return x


@layer
def names(x: real["N"], s: real[""]):
    a = undefined + 1  # E name: undefined is not defined
    b = a + also_undefined  # E name: also_undefined is not defined
    if s > 0:
        c = x
    d = c + 1  # E name: c is assigned only when the condition is true
    for i in range(3):
        if x[i] > 0:
            e = x * i
    f = x
    f = e  # E name: e is assigned only when the condition is true
    f = x
    del f
    g = f  # E name: f was deleted
    return a + b + np.zero(3)  # E unsupported: np.zero is not part of the subset


@layer
def types(x: real["N"], s: real[""], k: i64["N"], m: bool_["N"]):
    if s > 0:  # E type: y has shape (N,) on one branch and () on the other
        y = x
    else:
        y = s
    z = x + "text"  # E type
    a = x[0.5]  # E index: an index must be an integer
    b = x["a"]  # E
    c = x & x  # E type: & | ^ take booleans or integers
    d = ~x  # E type: take booleans or integers
    k[0] = 0.5  # E type: cannot store
    e = np.sum(x, axis=s)  # E type: axis must be an integer known at build time
    f = np.zeros(s)  # E type: an extent must be an integer
    g = x.astype("complex")  # E type: this dtype is not part of the subset
    h = x()  # E type: this cannot be called
    i, j = x, x, x  # E type: expected 2 values
    n = 10**30  # E type: does not fit 64 bits
    return x.nothing  # E unsupported: arrays have no attribute nothing


@layer
def copies(x: real["T D"], j: i64["D"]):
    """What NumPy reshapes is a copy here: nothing of what is written to it arrives."""
    b = np.tanh(x)[:, 1:]
    b.reshape(-1)[0] = 9.0  # E unsupported: may be a copy
    c = np.tanh(x)[::-1]
    c.reshape(-1)[...] += 2.0  # E unsupported: may be a copy
    d = np.flip(np.tanh(x), 0)
    d.reshape(-1)[0] = 9.0  # E unsupported: may be a copy
    e = x[:, j]
    e.reshape(-1)[0] = 9.0  # E unsupported: may be a copy
    f = np.tanh(x[:, j])
    f.reshape(-1)[0] = 9.0  # E unsupported: may be a copy
    g = np.split(np.tanh(x), [2], axis=1)[1]
    g.reshape(-1)[0] = 9.0  # E unsupported: may be a copy
    return b


@layer
def shapes(x: real["N"], y: real["M"], a: real["N M"], k: i64[""]):
    b = x + y  # E shape: do not broadcast
    c = x @ y  # E shape: N and M
    d = a @ a  # E shape
    e = a.reshape(3)  # E shape: cannot reshape
    f = np.concatenate([x, a])  # E shape: cannot concatenate
    g = np.stack([x, y])  # E shape: one shape
    h = x[0, 0]  # E index: too many indices
    i = np.zeros(k)  # E shape: depend on values
    j = x[:k]  # E shape: depends on values
    m = x[x > 0]  # E shape: depends on values
    n = np.unique(x)  # E shape: depends on values
    o = np.nonzero(x)  # E shape
    p = np.sum(x, axis=1)  # E shape: out of range
    q = np.transpose(a, (0, 0))  # E shape
    r = np.einsum("ij,jk->ik", a, a)  # E shape
    s = np.squeeze(a, 0)  # E shape: cannot squeeze
    t = np.broadcast_to(x, (3, 4))  # E shape
    u = np.split(a, 2.5)  # E
    x[:] = y  # E shape: do not broadcast
    return x[::0]  # E index: step cannot be zero


def recursive(n):
    return recursive(n)  # E unsupported: recursive calls itself


def takes_two(a, b):
    return a + b


@layer
def calls(x: real["N"]):
    a = recursive(x)
    b = takes_two(x)  # E type: takes_two needs b
    c = takes_two(x, x, x)  # E type: takes_two takes 2 arguments, got 3
    d = takes_two(x, c=x)  # E type: has no argument c
    e = np.sum(x, axes=1)  # E type: has no argument axes
    f = np.exp(x, out=x)  # E unsupported: out= is not part
    g = np.exp()  # E type: np.exp needs a
    h = np.tanhh(x)  # E unsupported: np.tanhh is not part
    i = max(x, x)  # E type: max of several arrays is ambiguous
    j = takes_two(**x)  # E
    k = x.sumn()  # E unsupported: arrays have no method sumn
    j2 = x.shape[np.argmax(np.ones((2, 3)), axis=1)]  # E type: the index of a tuple is one integer
    j3 = math.tan(x)  # E type: math.tan takes a scalar
    k2 = (len(x) > 1).copy()  # E type: a Python number (bool) has no copy
    m = np.random.rand(3)  # E
    n = np.fft.fft(x)  # E unsupported
    o = open("file")  # E
    p = eval("x")  # E
    q = [v for v in x if v > 0]  # E
    r = {1: x}  # E unsupported: a dictionary
    s = f"{x}"  # E unsupported
    t = (y := x)  # E unsupported
    return sorted(x)  # E


@layer
def kinds(x: real["N"], s: real[""]):
    if s > 0:  # E type: on one branch
        y = x
    else:
        y = x[1:]
    if s > 1:  # E type
        z = 1
    else:
        z = True
    h = True
    for i in range(3):  # E type: before the loop
        h = x
    return x


@layer
def returns_nothing(x: real["N"]):  # E type: returns nothing
    y = x


@layer
def returns_sometimes(x: real["N"], s: real[""]):  # E type: returned only when
    if s > 0:
        return x


@layer
def returns_other(x: real["N"]) -> real["M"]:
    return x  # E shape: declared is (M,)


@layer
def returns_floats(x: real["N"]) -> i64["N"]:
    return x  # E type: declared is i64


@layer
def returns_two(x: real["N"]) -> real["N"]:
    return x, x  # E type: 2 values are returned, 1 are declared


@layer
def stores_through_a_scalar(x: real["N"]):
    total = np.sum(x)
    y = np.reshape(total, (1,))
    y[0] = 2.0  # E type: this shows a scalar
    return y
