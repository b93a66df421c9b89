"""The nodes of units. A unit is an expression over these few kinds of nodes, each in a file of its own."""

from mmaprobe.smtmodel.nodes.cancelling import Cancelling
from mmaprobe.smtmodel.nodes.counting import Counting
from mmaprobe.smtmodel.nodes.cut import Cut
from mmaprobe.smtmodel.nodes.element import Constant, Element, Literal
from mmaprobe.smtmodel.nodes.exact import ExactSum
from mmaprobe.smtmodel.nodes.flags import Flags
from mmaprobe.smtmodel.nodes.fused import FusedSum
from mmaprobe.smtmodel.nodes.gate import Gate
from mmaprobe.smtmodel.nodes.grid import GridSum
from mmaprobe.smtmodel.nodes.index import Index
from mmaprobe.smtmodel.nodes.largest import Largest
from mmaprobe.smtmodel.nodes.node import Node
from mmaprobe.smtmodel.nodes.product import Product
from mmaprobe.smtmodel.nodes.quotient import Quotient
from mmaprobe.smtmodel.nodes.relu import Relu
from mmaprobe.smtmodel.nodes.repeat import Each, Repeat, Running
from mmaprobe.smtmodel.nodes.residues import Recombined, Residue
from mmaprobe.smtmodel.nodes.round import Round
from mmaprobe.smtmodel.nodes.scale import Scale
from mmaprobe.smtmodel.nodes.segment import Segment
from mmaprobe.smtmodel.nodes.shared import Shared
from mmaprobe.smtmodel.nodes.signed import Signed
from mmaprobe.smtmodel.nodes.sorting import SortedSum
from mmaprobe.smtmodel.nodes.sums import Sum

__all__ = [
    "Cancelling", "Constant", "Counting", "Cut", "Each", "Element", "ExactSum", "Flags", "FusedSum", "Gate",
    "GridSum", "Index", "Largest", "Literal", "Node", "Product", "Quotient", "Recombined", "Relu", "Repeat", "Residue",
    "Round", "Running", "Scale", "Segment", "Shared", "Signed", "SortedSum", "Sum",
]  # fmt: skip
