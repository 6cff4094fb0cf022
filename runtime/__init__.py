"""What a built package needs at run time, and the Net runtime: `from layerc.runtime import ...`.

Each name is imported at its first use (PEP 562): a built package pays for what it uses only.
"""

from importlib import import_module

_MODULES = {
    "set_num_threads": "layerc.runtime.threads",
    "get_num_threads": "layerc.runtime.threads",
    # The Net's names.
    "Blob": "layerc.runtime.blob",
    "NullBlob": "layerc.runtime.blob",
    "Parameter": "layerc.runtime.parameters",
    "Layer": "layerc.runtime.layer",
    "LayerState": "layerc.runtime.layer",
    "setup_layer": "layerc.runtime.layer",
    "Net": "layerc.runtime.net",
    "TopologyError": "layerc.runtime.topology",
    "Input": "layerc.runtime.data",
    "MemoryData": "layerc.runtime.data",
    "HDF5Data": "layerc.runtime.hdf5_data",
    "AsyncData": "layerc.runtime.async_data",
    "RandomNormal": "layerc.runtime.data",
    "DataTransformers": "layerc.runtime.data",
    "InnerProduct": "layerc.runtime.inner_product",
    "TiedInnerProduct": "layerc.runtime.inner_product",
    "Convolution": "layerc.runtime.convolution",
    "Embedding": "layerc.runtime.embedding",
    "BatchNorm": "layerc.runtime.normalisation",
    "LayerNorm": "layerc.runtime.normalisation",
    "GRU": "layerc.runtime.recurrent",
    "LSTM": "layerc.runtime.recurrent",
    "Dropout": "layerc.runtime.dropout",
    "Softmax": "layerc.runtime.softmax",
    "Identity": "layerc.runtime.identity",
    "ElementWise": "layerc.runtime.element_wise",
    "CompiledLayer": "layerc.runtime.compiled_layer",
    "FunctionLayer": "layerc.runtime.function_layer",
    "Argmax": "layerc.runtime.softmax",
    "Index2Onehot": "layerc.runtime.softmax",
    "RandomMask": "layerc.runtime.dropout",
    "Reshape": "layerc.runtime.rearrange",
    "Concat": "layerc.runtime.rearrange",
    "Split": "layerc.runtime.rearrange",
    "ODE": "layerc.runtime.ode",
    "Subnet": "layerc.runtime.subnet",
    "MemoryOutput": "layerc.runtime.outputs",
    "HDF5Output": "layerc.runtime.outputs",
    "Power": "layerc.runtime.power",
    "Pooling": "layerc.runtime.pooling",
    "ChannelPooling": "layerc.runtime.pooling",
    "LRN": "layerc.runtime.pooling",
    "Crop": "layerc.runtime.crop",
    "SoftmaxLoss": "layerc.runtime.label_losses",
    "MultinomialLogisticLoss": "layerc.runtime.label_losses",
    "SoftlabelSoftmaxLoss": "layerc.runtime.label_losses",
    "BinaryCrossEntropyLoss": "layerc.runtime.losses",
    "HingeLoss": "layerc.runtime.losses",
    "GaussianKLLoss": "layerc.runtime.losses",
    "WassersteinLoss": "layerc.runtime.wasserstein",
    "CTCLoss": "layerc.runtime.ctc",
    "BinaryAccuracy": "layerc.runtime.statistics",
    "SquareLoss": "layerc.runtime.losses",
    "Accuracy": "layerc.runtime.statistics",
    "Neurons": "layerc.runtime.neurons",
    "Constant": "layerc.runtime.initializers",
    "Xavier": "layerc.runtime.initializers",
    "He": "layerc.runtime.initializers",
    "Gaussian": "layerc.runtime.initializers",
    "Uniform": "layerc.runtime.initializers",
    "Orthogonal": "layerc.runtime.initializers",
    "Array": "layerc.runtime.initializers",
    "NoRegu": "layerc.runtime.regularizers",
    "L1Regu": "layerc.runtime.regularizers",
    "L2Regu": "layerc.runtime.regularizers",
    "NoCons": "layerc.runtime.constraints",
    "L2Cons": "layerc.runtime.constraints",
    "NonNeg": "layerc.runtime.constraints",
    "SGD": "layerc.runtime.solvers",
    "Nesterov": "layerc.runtime.solvers",
    "Adam": "layerc.runtime.solvers",
    "AdamW": "layerc.runtime.solvers",
    "RMSprop": "layerc.runtime.solvers",
    "Adagrad": "layerc.runtime.solvers",
    "Adadelta": "layerc.runtime.solvers",
    "LBFGS": "layerc.runtime.lbfgs",
    "LRPolicy": "layerc.runtime.policies",
    "MomPolicy": "layerc.runtime.policies",
    "TrainingSummary": "layerc.runtime.coffee",
    "ValidationPerformance": "layerc.runtime.coffee",
    "Function": "layerc.runtime.coffee",
    "ProgressBar": "layerc.runtime.coffee",
    "Plot": "layerc.runtime.coffee",
    "TensorBoard": "layerc.runtime.tensorboard",
    "Snapshot": "layerc.runtime.snapshot",
    "CoffeeLounge": "layerc.runtime.lounge",
    "LayercClassifier": "layerc.runtime.estimators",
    "LayercRegressor": "layerc.runtime.estimators",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
