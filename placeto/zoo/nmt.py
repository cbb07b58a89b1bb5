"""Neural machine translation: LSTM encoder and decoder with attention, unrolled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placeto.errors import PlacetoError

if TYPE_CHECKING:
    from collections.abc import Sequence


def nmt(
    layers: int = 2,
    batch: int = 64,
    length: int = 25,
    hidden: int = 1024,
    vocabulary: int = 32000,
    optimizer: str = "sgd",
    learning_rate: float = 0.5,
    clip: float = 5.0,
) -> Any:
    """The training step of an attention model like GNMT.

    Encoder and decoder have `layers` LSTM layers of `hidden` units. The first decoder layer's
    output asks an additive attention over the last encoder layer's outputs; the answer goes into
    every later layer and, with the next word, into the first layer's next step. Each decoder step
    has its own softmax over the vocabulary. Everything is unrolled over `length` words, and the
    ops of a part are named after it: `embedding/source`, `encoder/layer_0/step_3`,
    `attention/step_3`, `decoder/layer_1/step_3`, `softmax/step_3`, `update/encoder/layer_0`;
    gradients stand in the same scopes under `gradient_tape`.

    Wu et al. 2016, arXiv:1609.08144; attention of Bahdanau et al. 2014, arXiv:1409.0473. Vocabulary
    and width are GNMT's, the batch that of Mirhoseini et al. 2017, arXiv:1706.04972.

    Args:
        layers: LSTM layers on either side, from 1.
        batch: sentences in a batch.
        length: words in a sentence, source and target.
        hidden: units of a layer and of an embedding.
        vocabulary: words of either language.
        optimizer: `sgd` or `adam`.
        learning_rate: step size.
        clip: largest global norm of the gradients; 0 for no limit.

    Returns:
        A ConcreteFunction of `source` (batch, length) and `target` (batch, length + 1) word
        numbers, which returns the mean cross-entropy of a word.

    Raises:
        PlacetoError: a size below 1, an unknown optimizer.
    """
    import tensorflow as tf

    from placeto.zoo.optimizers import Optimizer

    sizes = {"layers": layers, "batch": batch, "length": length, "hidden": hidden}
    for key, value in {**sizes, "vocabulary": vocabulary}.items():
        if value < 1:
            raise PlacetoError(f"nmt: {key}={value} must be at least 1")
    variables = _variables(layers, hidden, vocabulary)
    update = Optimizer(optimizer, learning_rate, variables)

    def step(source: Any, target: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = _loss(variables, layers, source, target)
        gradients = tape.gradient(loss, list(variables.values()))
        if clip > 0:
            with tf.name_scope("clip/"):
                gradients, _ = tf.clip_by_global_norm(gradients, clip)
        update.apply(gradients)
        return loss

    return tf.function(step, autograph=False).get_concrete_function(
        tf.TensorSpec((batch, length), tf.int32, "source"),
        tf.TensorSpec((batch, length + 1), tf.int32, "target"),
    )


def _variables(layers: int, hidden: int, vocabulary: int) -> dict[str, Any]:
    import tensorflow as tf

    shapes: dict[str, tuple[int, ...]] = {
        "embedding/source/table": (vocabulary, hidden),
        "embedding/target/table": (vocabulary, hidden),
    }
    for layer in range(layers):
        shapes[f"encoder/layer_{layer}/kernel"] = (2 * hidden, 4 * hidden)
        shapes[f"encoder/layer_{layer}/bias"] = (4 * hidden,)
    for layer in range(layers):
        # Word or layer below, attention's answer, the layer's own last output.
        shapes[f"decoder/layer_{layer}/kernel"] = (3 * hidden, 4 * hidden)
        shapes[f"decoder/layer_{layer}/bias"] = (4 * hidden,)
    shapes["attention/memory_kernel"] = (hidden, hidden)
    shapes["attention/query_kernel"] = (hidden, hidden)
    shapes["attention/score"] = (hidden,)
    shapes["softmax/kernel"] = (hidden, vocabulary)
    shapes["softmax/bias"] = (vocabulary,)
    variables = {}
    for number, (name, shape) in enumerate(shapes.items()):
        if name.endswith("bias"):
            value = tf.zeros(shape)
        else:
            # GNMT draws all weights uniformly from [-0.04, 0.04].
            value = tf.random.stateless_uniform(shape, (0, number), -0.04, 0.04)
        variables[name] = tf.Variable(value, name=name)
    return variables


def _loss(variables: dict[str, Any], layers: int, source: Any, target: Any) -> Any:
    import tensorflow as tf

    batch, length = source.shape
    hidden = variables["attention/score"].shape[0]
    words = _embedded(variables, "source", source)
    for layer in range(layers):
        words = _encoder_layer(variables, layer, words)
    with tf.name_scope("attention/memory/"):
        memory = tf.stack(words, axis=1)  # (batch, length, hidden)
        flat = tf.reshape(memory, (batch * length, hidden))
        keys = tf.reshape(
            tf.matmul(flat, variables["attention/memory_kernel"]), (batch, length, hidden)
        )
    with tf.name_scope("embedding/target/"):
        given = target[:, :-1]
    words = _embedded(variables, "target", given)
    with tf.name_scope("decoder/start/"):
        zeros = tf.zeros((batch, hidden))
    states = [(zeros, zeros)] * layers
    context, losses = zeros, []
    for step in range(length):
        output = words[step]
        for layer in range(layers):
            with tf.name_scope(f"decoder/layer_{layer}/step_{step}/"):
                states[layer] = _lstm(
                    variables, f"decoder/layer_{layer}", [output, context], states[layer]
                )
            output = states[layer][0]
            if layer == 0:
                with tf.name_scope(f"attention/step_{step}/"):
                    context = _attend(variables, output, keys, memory)
        with tf.name_scope(f"softmax/step_{step}/"):
            logits = tf.nn.bias_add(
                tf.matmul(output, variables["softmax/kernel"]), variables["softmax/bias"]
            )
            losses.append(
                tf.reduce_sum(
                    tf.nn.sparse_softmax_cross_entropy_with_logits(target[:, step + 1], logits)
                )
            )
    with tf.name_scope("softmax/loss/"):
        return tf.add_n(losses) / (batch * length)


def _embedded(variables: dict[str, Any], side: str, words: Any) -> list[Any]:
    import tensorflow as tf

    with tf.name_scope(f"embedding/{side}/"):
        found = tf.gather(variables[f"embedding/{side}/table"], tf.transpose(words))
        return list(tf.unstack(found, axis=0))


def _encoder_layer(variables: dict[str, Any], layer: int, words: Sequence[Any]) -> list[Any]:
    import tensorflow as tf

    name = f"encoder/layer_{layer}"
    with tf.name_scope(f"{name}/start/"):
        zeros = tf.zeros_like(words[0])
    state, outputs = (zeros, zeros), []
    for step, word in enumerate(words):
        with tf.name_scope(f"{name}/step_{step}/"):
            state = _lstm(variables, name, [word], state)
        outputs.append(state[0])
    return outputs


def _lstm(
    variables: dict[str, Any], name: str, inputs: Sequence[Any], state: tuple[Any, Any]
) -> tuple[Any, Any]:
    import tensorflow as tf

    output, cell = state
    gates = tf.nn.bias_add(
        tf.matmul(tf.concat([*inputs, output], axis=1), variables[f"{name}/kernel"]),
        variables[f"{name}/bias"],
    )
    admit, candidate, forget, emit = tf.split(gates, 4, axis=1)
    cell = cell * tf.sigmoid(forget) + tf.sigmoid(admit) * tf.tanh(candidate)
    return tf.sigmoid(emit) * tf.tanh(cell), cell


def _attend(variables: dict[str, Any], query: Any, keys: Any, memory: Any) -> Any:
    import tensorflow as tf

    asked = tf.matmul(query, variables["attention/query_kernel"])[:, tf.newaxis, :]
    scores = tf.reduce_sum(tf.tanh(keys + asked) * variables["attention/score"], axis=2)
    weights = tf.nn.softmax(scores)[:, :, tf.newaxis]
    return tf.reduce_sum(weights * memory, axis=1)
