"""The documents that commands print, by command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mmaprobe.documents.check import CheckFolder
from mmaprobe.documents.cover import Cover
from mmaprobe.documents.datasheet import ImeDisclosure, P3109Declaration
from mmaprobe.documents.devices import Compare, Evaluate, Run
from mmaprobe.documents.distinguish import Distinguish
from mmaprobe.documents.explain import Explain, ExplainElement, Simulate, Study
from mmaprobe.documents.identify import (
    Build,
    Identify,
    IdentifyGemm,
    IdentifyInvariant,
    IdentifyProduct,
    Order,
    Separate,
)
from mmaprobe.documents.lists import Listed
from mmaprobe.documents.prove import ErrorBound, PlanErrorBound, Prove, ProveInvariant, ProvePlans
from mmaprobe.documents.verify import Verify

#: command -> what it prints with --json
DOCUMENTS: Mapping[str, Any] = {
    "distinguish": Distinguish,
    "prove": Prove | ProvePlans | ProveInvariant | ErrorBound | PlanErrorBound,
    "verify": Verify,
    "check": CheckFolder,
    "separate": Separate,
    "identify": Identify | Build | IdentifyGemm | IdentifyInvariant | IdentifyProduct,
    "order": Order,
    "cover": Cover,
    "evaluate": Evaluate,
    "run": Run,
    "compare": Compare,
    "explain": Explain | ExplainElement,
    "simulate": Simulate,
    "study": Study,
    "datasheet": ImeDisclosure | P3109Declaration,
    "list": Sequence[Listed],
}
