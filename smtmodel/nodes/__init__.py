"""The nodes of units: a unit is an expression over these few kinds, each in a file of its own."""

from smtmodel.nodes.cancelling import Cancelling
from smtmodel.nodes.cut import Cut
from smtmodel.nodes.element import Constant, Element, Literal
from smtmodel.nodes.exact import ExactSum
from smtmodel.nodes.fused import FusedSum
from smtmodel.nodes.gate import Gate
from smtmodel.nodes.grid import GridSum
from smtmodel.nodes.index import Index
from smtmodel.nodes.node import Node
from smtmodel.nodes.product import Product
from smtmodel.nodes.relu import Relu
from smtmodel.nodes.repeat import Each, Repeat, Running
from smtmodel.nodes.round import Round
from smtmodel.nodes.scale import Scale
from smtmodel.nodes.segment import Segment
from smtmodel.nodes.sums import Sum

__all__ = [
    "Cancelling", "Constant", "Cut", "Each", "Element", "ExactSum", "FusedSum", "Gate", "GridSum", "Index", "Literal",
    "Node", "Product", "Relu", "Repeat", "Round", "Running", "Scale", "Segment", "Sum",
]  # fmt: skip
