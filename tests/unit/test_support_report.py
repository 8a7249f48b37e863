import json

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.partition import PartitionPlan
from tflite_vk.support_report import NodeReport, SupportReport


def make_graph(*ops):
    tensors = {i: Tensor(i, "", (1,), DType.FLOAT32) for i in range(len(ops) + 1)}
    nodes = tuple(Node(i, op, (i,), (i + 1,)) for i, op in enumerate(ops))
    return Graph("g", tensors, nodes, (0,), (len(ops),))


GRAPH = make_graph("DEQUANTIZE", "CONV_2D", "WHERE", "CONV_2D", "CUMSUM", "WHERE")
PLAN = PartitionPlan(
    partitions=((1,), (3,)),
    reasons={2: "no kernel", 4: "axis 0", 5: "no kernel"},
    folded={0: 1},
    unsupported=frozenset({2, 4, 5}),
)


def test_from_plan():
    report = SupportReport.from_plan(GRAPH, PLAN, "llvmpipe")
    assert report.nodes[0] == NodeReport(0, "DEQUANTIZE", True, 1, None)
    assert report.nodes[2] == NodeReport(2, "WHERE", False, None, "no kernel", supported=False)
    assert (report.num_nodes, report.num_delegated, report.num_partitions) == (6, 3, 2)
    assert not report.is_fully_delegated


def test_text_of_a_mixed_model():
    assert str(SupportReport.from_plan(GRAPH, PLAN, "llvmpipe")) == (
        "Following operations are not supported by Vulkan delegate:\n"
        "CUMSUM: axis 0\n"
        "WHERE: no kernel (2 nodes)\n"
        "3 operations will run on the GPU (llvmpipe), in 2 partitions, "
        "and the remaining 3 operations will run on the CPU."
    )


def test_what_the_device_could_run_is_not_called_unsupported():
    plan = PartitionPlan(
        partitions=((0,),), reasons={1: "Excluded by option excluded_ops.", 2: "A constant."}
    )
    assert str(SupportReport.from_plan(make_graph("ADD", "MUL", "DEQUANTIZE"), plan)) == (
        "Following operations are supported but stay on the CPU:\n"
        "DEQUANTIZE: A constant.\n"
        "MUL: Excluded by option excluded_ops.\n"
        "1 operations will run on the GPU, in 1 partition, "
        "and the remaining 2 operations will run on the CPU."
    )


def test_text_when_all_are_taken_is_one_line():
    plan = PartitionPlan(partitions=((0, 1),))
    report = SupportReport.from_plan(make_graph("ADD", "MUL"), plan, "NVIDIA H200")
    assert str(report) == "All 2 operations will run on the GPU (NVIDIA H200), in 1 partition."
    assert report.is_fully_delegated


def test_text_when_none_is_taken():
    report = SupportReport.from_plan(
        make_graph("WHERE"), PartitionPlan(reasons={0: "no kernel"}, unsupported=frozenset({0}))
    )
    assert str(report) == (
        "Following operations are not supported by Vulkan delegate:\n"
        "WHERE: no kernel\n"
        "No operations will run on the GPU, and all 1 operations will run on the CPU."
    )


def test_empty_model():
    assert str(SupportReport()) == "The model has no operations."
    assert SupportReport().to_dict()["nodes"] == []


def test_join_numbers_subgraphs_and_partitions():
    one = SupportReport.from_plan(GRAPH, PLAN, "dev")
    two = SupportReport.from_plan(make_graph("ADD"), PartitionPlan(partitions=((0,),)), "dev")
    joined = SupportReport.join([one, two])
    assert (joined.num_nodes, joined.num_delegated, joined.num_partitions) == (7, 4, 3)
    assert joined.nodes[-1] == NodeReport(0, "ADD", True, 2, None, subgraph=1)
    assert joined.nodes[:6] == one.nodes
    assert joined.device == "dev"


def test_to_dict_is_json():
    out = json.loads(json.dumps(SupportReport.from_plan(GRAPH, PLAN, "dev").to_dict()))
    assert out["num_delegated"] == 3
    assert out["nodes"][2] == {
        "index": 2,
        "op": "WHERE",
        "delegated": False,
        "partition": None,
        "reason": "no kernel",
        "supported": False,
        "subgraph": 0,
    }
