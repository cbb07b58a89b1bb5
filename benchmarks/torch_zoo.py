"""Modules of public zoos, extracted: `python -m benchmarks.torch_zoo`.

Modules of torchvision, timm and transformers, as far as these are installed (`pip install
torchvision timm transformers`, with torch of the same build), with random weights, small inputs and
no download. `placeto extract` makes a training step of each, in a process of its own that has
`LIMIT` seconds. What is not imported has to end in one line that says why; a traceback, or an error
of placeto's own, is a failure. It goes on where it was stopped, and what it has gone through is in
`results/torch_zoo.json` and `.md`; `--only` takes modules whose names contain a text, and writes
into `build`.
"""

import contextlib
import importlib
import importlib.metadata
import importlib.util
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.output import RESULTS, command_line, machine, results_folder, save, table_of
from placeto.extraction import extract
from placeto.support.errors import PlacetoError
from placeto.support.files import read_json

LIMIT = 300.0
OURS = "its trace cannot be turned into a graph"
# Side of the image, where it is not 64.
TORCHVISION = {
    "alexnet": 64, "vgg11_bn": 64, "resnet18": 64, "resnext50_32x4d": 64, "densenet121": 64,
    "googlenet": 64, "inception_v3": 299, "mobilenet_v2": 64, "mobilenet_v3_small": 64,
    "efficientnet_b0": 64, "efficientnet_v2_s": 64, "mnasnet0_5": 64, "regnet_y_400mf": 64,
    "fasterrcnn_mobilenet_v3_large_320_fpn": 64, "retinanet_resnet50_fpn": 64,
    "ssdlite320_mobilenet_v3_large": 64, "raft_small": 128, "r3d_18": 32,
    "shufflenet_v2_x0_5": 64, "squeezenet1_1": 64, "convnext_tiny": 64, "swin_t": 64,
    "swin_v2_t": 64, "vit_b_16": 224, "maxvit_t": 224, "fcn_resnet50": 64,
    "deeplabv3_resnet50": 64, "lraspp_mobilenet_v3_large": 64, "s3d": 224, "mvit_v1_b": 224,
    "swin3d_t": 64, "fcos_resnet50_fpn": 64, "maskrcnn_resnet50_fpn": 64,
}  # fmt: skip
VIDEO = ("r3d_18", "s3d", "mvit_v1_b", "swin3d_t")
FRAMES = {"s3d": 16, "mvit_v1_b": 16}
TIMM = (
    "convnextv2_atto", "ghostnet_100", "levit_128s", "mixer_s32_224", "mobilevit_xxs",
    "pvt_v2_b0", "xcit_nano_12_p16_224", "caformer_s18", "coatnet_nano_rw_224",
    "crossvit_tiny_240", "davit_tiny", "deit_tiny_distilled_patch16_224", "dla34", "dm_nfnet_f0",
    "edgenext_xx_small", "efficientvit_b0", "eva02_tiny_patch14_224", "fastvit_t8",
    "focalnet_tiny_srf", "gmlp_s16_224", "hiera_tiny_224", "hrnet_w18_small",
    "inception_next_atto", "poolformer_s12", "repvgg_a0", "res2net50_26w_4s", "rexnet_100",
    "skresnet18", "tiny_vit_5m_224", "twins_svt_small", "volo_d1_224",
)  # fmt: skip
# Class -> what it is called with, and settings of its own.
TEXT, PAIR, IMAGE = "text", "pair", "image"
LAYERS = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
}  # fmt: skip
TRANSFORMERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "AlbertForMaskedLM": (TEXT, {"embedding_size": 32}),
    "BartForConditionalGeneration": (PAIR, {}),
    "BeitForImageClassification": (IMAGE, {"image_size": 64}),
    "BertForMaskedLM": (TEXT, {}),
    "BigBirdForMaskedLM": (TEXT, {"block_size": 4}),
    "BloomForCausalLM": (TEXT, {}),
    "CLIPModel": ("both", {"text_config": LAYERS, "vision_config": LAYERS | {"image_size": 64}}),
    "ConditionalDetrForObjectDetection": (IMAGE, {}),
    "ConvNextForImageClassification": (IMAGE, {}),
    "DabDetrForObjectDetection": (IMAGE, {}),
    "DebertaV2ForMaskedLM": (TEXT, {}),
    "DeformableDetrForObjectDetection": (IMAGE, {}),
    "DetrForObjectDetection": (IMAGE, {}),
    "DistilBertForMaskedLM": (TEXT, {}),
    "DPTForDepthEstimation": (IMAGE, {"image_size": 64, "num_hidden_layers": 12}),
    "ElectraForMaskedLM": (TEXT, {}),
    "FalconForCausalLM": (TEXT, {}),
    "Gemma2ForCausalLM": (TEXT, {"head_dim": 16}),
    "GPT2LMHeadModel": (TEXT, {}),
    "GPTNeoXForCausalLM": (TEXT, {}),
    "HubertForCTC": ("speech", {}),
    "LlamaForCausalLM": (TEXT, {}),
    "LongformerForMaskedLM": (TEXT, {"attention_window": 8}),
    "MambaForCausalLM": (TEXT, {}),
    "MarianMTModel": (PAIR, {"pad_token_id": 0, "decoder_start_token_id": 0}),
    "Mask2FormerForUniversalSegmentation": (IMAGE, {}),
    "MixtralForCausalLM": (TEXT, {"num_local_experts": 2}),
    "OPTForCausalLM": (TEXT, {"word_embed_proj_dim": 64}),
    "PhiForCausalLM": (TEXT, {}),
    "Qwen3ForCausalLM": (TEXT, {"head_dim": 16}),
    "RobertaForMaskedLM": (TEXT, {}),
    "RTDetrForObjectDetection": (IMAGE, {"d_model": 256}),
    "SegformerForSemanticSegmentation": (IMAGE, {}),
    "SwinForImageClassification": (IMAGE, {"image_size": 64, "window_size": 2}),
    "T5ForConditionalGeneration": (PAIR, {"decoder_start_token_id": 0}),
    "TableTransformerForObjectDetection": (IMAGE, {}),
    "TimesformerForVideoClassification": ("video", {"image_size": 64, "num_frames": 4}),
    "ViTForImageClassification": (IMAGE, {"image_size": 64}),
    "ViTMAEForPreTraining": (IMAGE, {"image_size": 64}),
    "Wav2Vec2ForCTC": ("speech", {}),
    "WhisperForConditionalGeneration": ("spectrum", {"max_source_positions": 32}),
    "XLNetLMHeadModel": (TEXT, {}),
    "YolosForObjectDetection": (IMAGE, {"image_size": [64, 64]}),
}
SMALL = LAYERS | {
    "num_key_value_heads": 2, "vocab_size": 1000, "d_model": 64, "encoder_layers": 2,
    "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "num_layers": 2, "num_heads": 4, "n_layer": 2,
    "n_head": 4, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "use_pretrained_backbone": False,
}  # fmt: skip


def smallest() -> tuple[nn.Module, Tensor]:
    """One layer."""
    return nn.Linear(2, 2), torch.rand(2, 2)


def from_torchvision(name: str) -> tuple[nn.Module, Any]:
    """A model without weights, and two inputs; of detection with what is in the images."""
    models = importlib.import_module("torchvision.models")
    backbone = (
        {"weights_backbone": None} if "_resnet50" in name or "mobilenet_v3_large" in name else {}
    )
    model = models.get_model(name, weights=None, **backbone)
    side = TORCHVISION[name]
    image = torch.rand(2, 3, side, side)
    if name in VIDEO:
        return model, torch.rand(2, 3, FRAMES.get(name, 8), side, side)
    if name == "raft_small":
        return model, (image, image)
    if type(model).__module__.startswith("torchvision.models.detection"):
        boxes = torch.tensor([[4.0, 4.0, 40.0, 40.0]])
        inside: dict[str, Tensor] = {"boxes": boxes, "labels": torch.ones(1, dtype=torch.int64)}
        inside["masks"] = torch.ones(1, side, side, dtype=torch.uint8)
        return model, (list(image), [inside, inside])
    return model, image


def from_timm(name: str) -> tuple[nn.Module, Tensor]:
    """A model without weights, and two images as large as it is made for."""
    timm = importlib.import_module("timm")
    model: nn.Module = timm.create_model(name, pretrained=False)
    return model, torch.rand(2, *model.default_cfg["input_size"])  # type: ignore[index, misc]


def from_transformers(name: str) -> tuple[nn.Module, dict[str, Tensor]]:
    """A small model of a class, and a batch of two of what it is called with."""
    library = importlib.import_module("transformers")
    kind = getattr(library, name)
    usual, renamed = kind.config_class(), kind.config_class.attribute_map
    small = {
        key: value
        for key, value in SMALL.items()
        if key not in renamed and isinstance(getattr(usual, key, ""), int | None)
    }
    called, own = TRANSFORMERS[name]
    model = kind(kind.config_class(**small | own))
    text = torch.zeros(2, 16, dtype=torch.int64)
    image = {"pixel_values": torch.rand(2, 3, 64, 64)}
    inputs = {
        TEXT: {"input_ids": text, "labels": text},
        PAIR: {"input_ids": text, "labels": text},
        IMAGE: image,
        "both": {"input_ids": text, **image},
        "video": {"pixel_values": torch.rand(2, 4, 3, 64, 64)},
        "speech": {"input_values": torch.rand(2, 4000)},
        "spectrum": {"input_features": torch.rand(2, 80, 64), "decoder_input_ids": text},
    }
    return model, inputs[called]


LIBRARIES: Mapping[str, Sequence[str]] = {
    "transformers": list(TRANSFORMERS), "timm": TIMM, "torchvision": list(TORCHVISION),
}  # fmt: skip


def attempt(library: str, name: str) -> dict[str, Any]:
    """What becomes of a module: `ops` and `edges`, a `reason` in one line, or a `traceback`."""
    ours, theirs = multiprocessing.get_context("fork").Pipe()
    began = time.monotonic()
    process = multiprocessing.get_context("fork").Process(
        target=_child, args=(library, name, theirs)
    )
    process.start()
    theirs.close()
    found: dict[str, Any] = {"reason": f"not done within {LIMIT:g} s"}
    if ours.poll(LIMIT):
        try:
            found = ours.recv()
        except EOFError:
            process.join()
            found = {"traceback": f"the process ended with status {process.exitcode}"}
    process.kill()
    process.join()
    return {"library": library, **found, "seconds": time.monotonic() - began}


def _child(library: str, name: str, answer: Connection) -> None:
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        try:
            graph = extract(f"benchmarks.torch_zoo:from_{library}?name={name}").graph
        except PlacetoError as error:
            line = " ".join(str(error).split())
            found = {"traceback" if OURS in line else "reason": line}
        except Exception:  # whatever it is, it is what is looked for
            found = {"traceback": traceback.format_exc()}
        else:
            found = {"ops": graph.num_ops, "edges": graph.num_edges}
    answer.send(found)


def markdown(found: Mapping[str, Mapping[str, Any]]) -> str:
    """How many of each library, those that are not imported, and how large the others are."""
    page = table_of([
        {
            "library": library,
            "modules": str(len(own)),
            "imported": str(sum("ops" in each for each in own)),
            "refused in one line": str(sum("reason" in each for each in own)),
            "tracebacks": str(sum("traceback" in each for each in own)),
            "ops": _between([each["ops"] for each in own if "ops" in each]),
        }
        for library in LIBRARIES
        if (own := [each for each in found.values() if each["library"] == library])
    ])  # fmt: skip
    refused = [
        {"not imported": f"`{name}`", "why": _short(each).replace("|", "\\|")}
        for name, each in found.items()
        if "ops" not in each
    ]
    if refused:
        page += "\n" + table_of(refused)
    imported = [f"`{name}` {each['ops']}" for name, each in found.items() if "ops" in each]
    return page + f"\nImported, with their ops: {', '.join(imported)}.\n"


def _between(ops: Sequence[int]) -> str:
    return f"{min(ops)} to {max(ops)}" if ops else ""


def _short(each: Mapping[str, Any]) -> str:
    line = str(each.get("reason") or str(each["traceback"]).strip().splitlines()[-1])
    return line.partition(": ")[2] or line


def main() -> None:
    """Goes through all modules."""
    parser = command_line("torch_zoo", "three modules of each library; results into build")
    parser.add_argument("--only", help="modules whose names contain this; results into build")
    wanted = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    torch.set_num_threads(1)
    if importlib.util.find_spec("torchvision") is not None:
        define_kernels()  # timm imports it, too
    versions, names = {"torch": torch.__version__}, dict[str, str]()
    for library, own in LIBRARIES.items():
        if importlib.util.find_spec(library) is None:
            print(f"{library} is not installed", file=sys.stderr)
            continue
        importlib.import_module(library)
        versions[library] = importlib.metadata.version(library)
        few = [name for name in own if (wanted.only or "") in name]
        names |= dict.fromkeys(few[:3] if wanted.quick else few, library)
    folder = results_folder(wanted.quick or wanted.only is not None)
    kept = folder / "torch_zoo.json"
    before = read_json(kept) if kept.exists() and folder == RESULTS else {}
    found = before["modules"] if before.get("versions") == versions else {}
    extract("benchmarks.torch_zoo:smallest")  # what it imports is there for every process
    for name, library in names.items():
        if name in found:
            continue
        found[name] = attempt(library, name)
        said = found[name].get("ops") or _short(found[name])
        print(f"{name}: {said} ({found[name]['seconds']:.0f} s)", file=sys.stderr, flush=True)
        document = {"machine": machine(), "versions": versions, "modules": found}
        with contextlib.redirect_stdout(None):
            save("torch_zoo", document, markdown(found), folder, indent=1)
    print(markdown(found), end="")


def define_kernels() -> None:
    """Names what torchvision looks up, where its library is of another build of torch.

    It cannot be imported otherwise. Models that need its own kernels then say so.
    """
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        for name in [each for each in sys.modules if each.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        for name in ("nms", "qnms"):
            _KERNELS.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


_KERNELS = torch.library.Library("torchvision", "FRAGMENT")  # they live as long as it does


if __name__ == "__main__":
    main()
