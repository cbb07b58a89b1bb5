"""From each kind of source that is TensorFlow's to a training step."""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf
from google.protobuf import text_format
from google.protobuf.message import DecodeError
from tensorflow.core.framework.graph_pb2 import GraphDef
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.python.framework import op_def_registry

from placeto.extraction.initializers import INITIALIZER
from placeto.extraction.op_kinds import NOT_SINKS
from placeto.extraction.source import Source, take_options, unknown
from placeto.extraction.step import TrainingStep, op_of
from placeto.extraction.tracing import training_step, variables_kept
from placeto.extraction.user_code import running, user_function
from placeto.support.errors import PlacetoError
from placeto.support.files import read_bytes
from placeto.zoo.microbatches import BY_MICROBATCH, checked, differentiated
from placeto.zoo.models import KERAS_MODELS, STEPS

STEP_OPTIONS = {
    "batch": 32,
    "optimizer": "momentum",
    "learning_rate": 0.01,
    "loss": "auto",
    "microbatches": 1,
}
_OPTIMIZERS = {
    "sgd": keras.optimizers.SGD,
    "momentum": partial(keras.optimizers.SGD, momentum=0.9),
    "rmsprop": keras.optimizers.RMSprop,
    "adam": keras.optimizers.Adam,
}
_LOSSES = ("auto", "crossentropy", "mse")
_SIDE = 224  # for models of no size of their own, whose authors report this one
_KEPT = frozenset({"_class", "_XlaMustCompile"})


def load_step(source: Source, kind: str) -> TrainingStep:
    """The training step of a source for one of `LOADERS`, independent of where it was traced.

    It has no devices and no private attributes, and its inputs are of known shape.

    Raises:
        PlacetoError: there is no such source, or no training step can be made of it.
    """
    # Keras numbers layers and draws weights from where the process left off.
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)
    with variables_kept():
        step = LOADERS[kind](source)
    _clean(step.graph_def.node)
    for function in step.graph_def.library.function:
        _clean(function.node_def)
    inputs = [node for node in step.graph_def.node if node.op == "Placeholder"]
    fixed = [_fix_shape(node, step.batch) for node in inputs]
    if step.batch is not None and not any(fixed):
        raise PlacetoError(
            f"batch={step.batch} has no use: no input has an unknown first dimension; leave it out"
        )
    return step


def _clean(nodes: Iterable[NodeDef]) -> None:
    for node in nodes:
        node.device = ""
        node.ClearField("experimental_debug_info")
        for key in [key for key in node.attr if key.startswith("_") and key not in _KEPT]:
            # `_lower_using_switch_merge` is among them: lowered loops would be cycles.
            del node.attr[key]


def _fix_shape(node: NodeDef, batch: int | None) -> bool:
    """Fills in the batch; returns whether it was."""
    shape = node.attr["shape"].shape
    missing = [index for index, dim in enumerate(shape.dim) if dim.size < 0]
    if missing == [0] and batch is not None:
        shape.dim[0].size = batch
        return True
    if shape.unknown_rank or missing:
        found = "unknown" if shape.unknown_rank else [dim.size for dim in shape.dim]
        raise PlacetoError(
            f"input {node.name!r} has shape {found}; give a static shape, or ?batch=N where only "
            "the first dimension is unknown"
        )
    return False


def _load_keras(source: Source) -> TrainingStep:
    """`keras:MODEL?…`: a Keras Application with random weights.

    Options: those of `STEP_OPTIONS`, `classes`, `image` (side in pixels; 0 is the model's
    own) and `channels`.
    """
    models = {
        name: value
        for name, value in vars(keras.applications).items()
        if inspect.isfunction(value) and "classes" in inspect.signature(value).parameters
    }
    if source.target not in models:
        said = f"keras.applications has no model {source.target!r}"
        raise unknown(source.text, said, "models", sorted(models))
    options = take_options(source, {**STEP_OPTIONS, "classes": 1000, "image": 0, "channels": 3})
    build = models[source.target]
    arguments: dict[str, Any] = {"weights": None, "classes": options["classes"]}
    if side := options["image"]:
        arguments["input_shape"] = (side, side, options["channels"])
    elif options["channels"] != 3:
        raise PlacetoError(f"{source.text}: channels needs image, such as image=224")
    try:
        model = build(**arguments)
        if None in model.inputs[0].shape[1:]:
            keras.backend.clear_session()
            keras.utils.set_random_seed(0)
            model = build(**arguments, input_shape=(_SIDE, _SIDE, 3))
    except ValueError as error:
        line = str(error).strip().splitlines()[0]
        raise PlacetoError(f"{source.text}: Keras cannot build the model: {line}") from error
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", source.target).lower()
    return _keras_step(model, name, options)


def _keras_step(model: Any, name: str, options: Mapping[str, Any]) -> TrainingStep:
    """The step that fits a Keras model to one batch.

    Of `options`, those of `STEP_OPTIONS` count. The loss is by default the cross-entropy for an
    output of over one class that ends in a softmax, and the mean square otherwise.

    Raises:
        PlacetoError: a bad option, or an input with an unknown dimension beside the batch.
    """
    batch, count = options["batch"], options["microbatches"]
    if batch < 1:
        raise PlacetoError(f"{name}: batch={batch} must be at least 1")
    examples = checked(name, batch, count)
    choice = options["optimizer"]
    if choice not in _OPTIMIZERS:
        raise unknown(name, f"optimizer={choice} is unknown", "optimizers", _OPTIMIZERS)
    optimizer = _OPTIMIZERS[choice](options["learning_rate"])
    optimizer.build(model.trainable_variables)
    inputs = []
    for tensor in model.inputs:
        if None in tensor.shape[1:]:
            raise PlacetoError(
                f"{name}: input {tensor.name!r} has shape {tuple(tensor.shape)}; every dimension "
                "but the batch must be known"
            )
        inputs.append(tf.TensorSpec([examples, *tensor.shape[1:]], tensor.dtype, tensor.name))
    if options["loss"] not in _LOSSES:
        raise unknown(name, f"loss={options['loss']} is unknown", "losses", _LOSSES)
    losses = [_loss(tensor, options["loss"]) for tensor in model.outputs]
    labels = [
        tf.TensorSpec([examples, *shape], dtype, f"label_{number}")
        for number, (_, shape, dtype) in enumerate(losses)
    ]
    # A Sequential model is one in an inner model.
    structure = (getattr(model, "_functional", None) or model)._inputs_struct

    def loss(inputs: Any, labels: Any) -> Any:
        given = keras.tree.pack_sequence_as(structure, inputs)
        outputs = keras.tree.flatten(model(given, training=True))
        parts = [
            loss(label, output)
            for (loss, _, _), label, output in zip(losses, labels, outputs, strict=True)
        ]
        parts += model.losses
        return tf.add_n(parts) if len(parts) > 1 else parts[0]

    def step(*examples: Any) -> Any:
        each = [partial(loss, *both) for both in examples]
        total, gradients = differentiated(each, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return total

    given = [(inputs, labels)] * count
    traced = tf.function(step, autograph=False).get_concrete_function(*given)
    variables = [*model.variables, *optimizer.variables]
    made = training_step(traced, name, {id(each.value.handle): each.path for each in variables})
    normalized = any(isinstance(each, keras.layers.BatchNormalization) for each in _layers(model))
    warnings = (BY_MICROBATCH,) if count > 1 and normalized else ()
    return replace(made, examples=batch, warnings=warnings)


def _layers(model: Any) -> list[Any]:
    """A model's layers, those of models within it, too."""
    inner = [layer for layer in model.layers if isinstance(layer, keras.Model)]
    return [*model.layers, *(layer for each in inner for layer in _layers(each))]


def _loss(output: Any, choice: str) -> tuple[Any, tuple[int, ...], str]:
    """The loss of an output, and of its labels the shape, without the batch, and the dtype."""
    operation = output._keras_history.operation
    softmax = getattr(operation, "activation", None) is keras.activations.softmax or isinstance(
        operation, keras.layers.Softmax
    )
    if choice == "crossentropy" or (choice == "auto" and softmax):
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=not softmax)
        return loss, output.shape[1:-1], "int32"
    return keras.losses.MeanSquaredError(), output.shape[1:], "float32"


def _load_zoo(source: Source) -> TrainingStep:
    """`zoo:MODEL?…`: a model of `placeto.zoo`.

    Options: the parameters of the model's function, and those of `STEP_OPTIONS` for a Keras model.
    """
    models = {**STEPS, **KERAS_MODELS}
    name = source.target
    if name not in models:
        raise unknown(source.text, f"the zoo has no model {name!r}", "models", sorted(models))
    own = {each.name: each.default for each in inspect.signature(models[name]).parameters.values()}
    if name in STEPS:
        options = take_options(source, own)
        return replace(training_step(STEPS[name](**options), name), examples=options["batch"])
    options = take_options(source, {**STEP_OPTIONS, **own})
    return _keras_step(models[name](**{key: options[key] for key in own}), name, options)


def _load_module(source: Source) -> TrainingStep:
    """`package.module:function?…`: what the user's own function returns.

    That is a ConcreteFunction, a tf.function with an `input_signature`, or a Keras model, for which
    the options of `STEP_OPTIONS` can be given beside the function's own.
    """
    make, options, own = user_function(source, STEP_OPTIONS)
    with running(source):
        made = make()
        if isinstance(made, keras.Model):
            return _keras_step(made, source.target, options)
    for key in source.options:
        if key not in own:
            raise unknown(source.text, f"{source.target} takes no {key!r}", "options", own)
    concrete = tf.types.experimental.ConcreteFunction
    if isinstance(made, tf.types.experimental.PolymorphicFunction):
        if made.input_signature is None and not isinstance(made, concrete):
            raise PlacetoError(
                f"{source.text}: the tf.function has no input_signature; give it one, or return "
                "its get_concrete_function(...)"
            )
        with running(source):
            made = made.get_concrete_function()
    if not isinstance(made, concrete):
        raise PlacetoError(
            f"{source.text}: returned {type(made).__name__}, expected a ConcreteFunction, a "
            "tf.function with an input_signature, or a Keras model; a torch.nn.Module comes from a "
            "module that imports torch, and not TensorFlow"
        )
    return replace(training_step(made, source.target), examples=own.get("batch"))


def _load_saved_model(source: Source) -> TrainingStep:
    """What a signature of a SavedModel directory computes.

    Options: `signature` (default `serving_default`, or the only one) and `batch`, for inputs whose
    first dimension is unknown.
    """
    options = take_options(source, {"signature": "", "batch": 0})
    path = Path(source.target)
    try:
        model = tf.saved_model.load(str(path))
    except (OSError, ValueError, tf.errors.OpError) as error:
        line = str(error).strip().splitlines()[0]
        raise PlacetoError(f"{path}: not a SavedModel: {line}") from error
    signatures = getattr(model, "signatures", {})
    only = next(iter(signatures)) if len(signatures) == 1 else "serving_default"
    wanted = options["signature"] or only
    if wanted not in signatures:
        raise unknown(source.text, f"no signature {wanted!r}", "signatures", sorted(signatures))
    step, batch = training_step(signatures[wanted], path.resolve().name), options["batch"] or None
    return replace(step, batch=batch, examples=batch)


def _load_graph_def(source: Source) -> TrainingStep:
    """What a serialized GraphDef describes: `.pb`, `.pbtxt`, either compressed.

    Options: `fetch`, ops or tensors that must run, separated by commas (by default every op
    that nothing consumes), and `batch`, for inputs whose first dimension is unknown.
    """
    options = take_options(source, {"fetch": "", "batch": 0})
    path = Path(source.target)
    graph_def = _parse(path)
    types = {node.name: node.op for node in graph_def.node}
    if options["fetch"]:
        roots = [name.strip() for name in options["fetch"].split(",")]
    else:
        consumed = {op_of(tensor) for node in graph_def.node for tensor in node.input}
        roots = [
            name
            for name, op in types.items()
            if not (name in consumed or op in NOT_SINKS or name.split("/")[0] == INITIALIZER)
        ]
    for name in roots:
        if op_of(name) not in types:
            raise PlacetoError(f"{source.text}: fetch {name!r} is not an op of {path.name}")
    if not roots:
        raise PlacetoError(f"{source.text}: no op to run was found; name some with ?fetch=op,op")
    fetches, targets = [], []
    for name in roots:
        definition = op_def_registry.get(types[op_of(name)])
        if definition is None or definition.output_arg:
            fetches.append(name if ":" in name else f"{name}:0")
        else:
            targets.append(op_of(name))
    name, batch = path.name.split(".")[0], options["batch"] or None
    return TrainingStep(
        name, graph_def, tuple(fetches), tuple(targets), batch=batch, examples=batch
    )


def _parse(path: Path) -> GraphDef:
    data = read_bytes(path)
    try:
        if ".pbtxt" in path.suffixes:
            graph_def = text_format.Parse(data, GraphDef())
        else:
            graph_def = GraphDef.FromString(data)
    except (DecodeError, text_format.ParseError, UnicodeDecodeError) as error:
        raise PlacetoError(f"{path}: not a GraphDef ({error})") from error
    names = {node.name for node in graph_def.node}
    if not names or "" in names:
        raise PlacetoError(f"{path}: not a GraphDef (no named ops in it)")
    functions = {function.signature.name for function in graph_def.library.function}
    for node in graph_def.node:
        if node.op not in functions and op_def_registry.get(node.op) is None:
            raise PlacetoError(f"{path}: op {node.name!r} has type {node.op!r}, unknown here")
        for tensor in node.input:
            if op_of(tensor) not in names:
                raise PlacetoError(
                    f"{path}: op {node.name!r} consumes {tensor!r}, which is not there; is the "
                    "file cut off?"
                )
    return graph_def


LOADERS: dict[str, Callable[[Source], TrainingStep]] = {
    "keras": _load_keras,
    "zoo": _load_zoo,
    "module": _load_module,
    "savedmodel": _load_saved_model,
    "graphdef": _load_graph_def,
}
