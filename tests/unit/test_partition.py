import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflite_vk.dtypes import DType
from tflite_vk.ir.graph import Graph, Node, Tensor
from tflite_vk.partition import excluded_by_options, extract, plan_partitions


def graph(nodes, inputs=(0,), outputs=None, constants=(), folded=None, dtypes=None):
    """nodes: (op, reads, writes); tensor ids as they come up; unread results are outputs."""
    made = [
        Node(i if len(n) == 3 else n[3], n[0], tuple(n[1]), tuple(n[2]))
        for i, n in enumerate(nodes)
    ]
    ids = {*inputs, *constants, *(outputs or ()), *(folded or {})}
    for n in made:
        ids |= {*n.reads, *n.outputs}
    known = {*constants, *(folded or {})}
    tensors = {
        i: Tensor(
            i,
            f"t{i}",
            (2,),
            (dtypes or {}).get(i, DType.FLOAT32),
            data=np.zeros(2, np.float32) if i in known else None,
        )
        for i in sorted(ids)
    }
    if outputs is None:
        read = {t for n in made for t in n.reads}
        outputs = [t for n in made for t in n.outputs if t not in read]
    return Graph("g", tensors, tuple(made), tuple(inputs), tuple(outputs), folded or {})


def only_gpu(node, graph):
    return None if node.op.startswith("GPU") else "no kernel"


def test_all_taken_is_one_partition():
    g = graph([("GPU", [0], [1]), ("GPU", [1], [2])])
    plan = plan_partitions(g, only_gpu)
    assert plan.partitions == ((0, 1),)
    assert plan.reasons == {}
    assert plan.delegated == {0, 1}
    assert plan.partition_of(1) == 0
    assert plan.partition_of(7) is None


def test_cpu_node_in_the_middle_splits():
    g = graph([("GPU", [0], [1]), ("CPU", [1], [2]), ("GPU", [2], [3])])
    plan = plan_partitions(g, only_gpu)
    assert plan.partitions == ((0,), (2,))
    assert plan.reasons == {1: "no kernel"}


def test_cpu_node_beside_does_not_split():
    # 0 -> 1 -> 3, 0 -> 2(cpu) -> output: the CPU branch can run afterwards.
    g = graph([("GPU", [0], [1]), ("GPU", [1], [2]), ("CPU", [1], [9]), ("GPU", [2], [3])])
    assert plan_partitions(g, only_gpu).partitions == ((0, 1, 3),)


def test_diamond_with_cpu_arm():
    g = graph(
        [
            ("GPU", [0], [1]),
            ("CPU", [1], [2]),
            ("GPU", [1], [3]),
            ("GPU", [2, 3], [4]),
        ]
    )
    assert plan_partitions(g, only_gpu).partitions == ((0, 2), (3,))


def test_documented_example_of_tflite():
    # 0 -> 1 -> 2* -> 3* -> 5, 1 -> 4 -> 5, where * is delegated: {0, 1, 4}, {2, 3}, {5}.
    g = graph(
        [
            ("CPU", [0], [1]),
            ("CPU", [1], [2]),
            ("GPU", [2], [3]),
            ("GPU", [3], [4]),
            ("CPU", [2], [5]),
            ("CPU", [4, 5], [6]),
        ]
    )
    assert plan_partitions(g, only_gpu).partitions == ((2, 3),)


def test_side_effects_keep_their_order():
    # Node 1 reads a resource that node 0 writes; without the order it could join the first turn.
    nodes = [("CPU_WRITE", [8, 0], [1]), ("GPU", [0], [2]), ("GPU_READ", [8], [3])]
    g = graph(nodes, inputs=(0, 8), dtypes={8: DType.RESOURCE})
    assert plan_partitions(g, only_gpu).partitions == ((1, 2),)
    nodes = [("GPU", [0], [1]), ("CPU_W", [8, 1], [2]), ("GPU_R", [8], [3])]
    g = graph(nodes, inputs=(0, 8), dtypes={8: DType.RESOURCE})
    assert plan_partitions(g, only_gpu).partitions == ((0,), (2,))


def test_limits():
    nodes = [
        ("GPU", [0], [1]),
        ("CPU", [1], [2]),
        ("GPU", [2], [3]),
        ("GPU", [3], [4]),
        ("CPU", [4], [5]),
        ("GPU", [5], [6]),
        ("GPU", [6], [7]),
        ("GPU", [7], [8]),
    ]
    g = graph(nodes)
    assert plan_partitions(g, only_gpu).partitions == ((0,), (2, 3), (5, 6, 7))
    plan = plan_partitions(g, only_gpu, min_nodes=2)
    assert plan.partitions == ((2, 3), (5, 6, 7))
    assert plan.reasons[0] == ("Its partition has 1 node(s); option min_nodes_per_partition is 2.")
    plan = plan_partitions(g, only_gpu, max_partitions=1)
    assert plan.partitions == ((5, 6, 7),)
    assert set(plan.reasons) == {0, 1, 2, 3, 4}
    assert "max_delegated_partitions is 1" in plan.reasons[2]
    assert plan_partitions(g, only_gpu, min_nodes=9).partitions == ()


def test_equal_partitions_earliest_first():
    g = graph([("GPU", [0], [1]), ("CPU", [1], [2]), ("GPU", [2], [3])])
    assert plan_partitions(g, only_gpu, max_partitions=1).partitions == ((0,),)


def test_excluded():
    g = graph([("GPU_A", [0], [1]), ("GPU_B", [1], [2]), ("GPU_A", [2], [3])])
    excluded = excluded_by_options(g, ["gpu_b"], [2])
    assert excluded == {
        1: "Excluded by option excluded_ops.",
        2: "Excluded by option excluded_nodes.",
    }
    plan = plan_partitions(g, only_gpu, excluded=excluded)
    assert plan.partitions == ((0,),)
    assert plan.reasons == excluded


def test_custom_names_are_exact():
    node = Node(0, "MyOp", (0,), (1,), is_custom=True)
    g = graph([])
    g = Graph("g", g.tensors, (node,), (0,), (1,))
    assert excluded_by_options(g, ["MYOP"]) == {}
    assert list(excluded_by_options(g, ["MyOp"])) == [0]


def test_failing_check_costs_one_node():
    def odd(node, graph):
        if node.index == 1:
            raise KeyError("oops")

    g = graph([("GPU", [0], [1]), ("GPU", [1], [2]), ("GPU", [2], [3])])
    plan = plan_partitions(g, odd)
    assert plan.partitions == ((0,), (2,))
    assert plan.reasons == {1: "The check for support failed: KeyError: 'oops'"}


class TestFolded:
    """Node indices 0 and up of the file; folded ones are gone from the graph's nodes."""

    def test_counts_to_its_reader(self):
        g = graph(
            [("GPU", [0], [1], 2), ("CPU", [1], [2], 3), ("GPU", [2, 11], [3], 4)],
            folded={10: (0,), 11: (1,)},
        )
        g = g.with_(nodes=[g.nodes[0], g.nodes[1], g.nodes[2]])
        plan = plan_partitions(g, only_gpu)
        assert plan.partitions == ((2,), (4,))
        assert plan.folded == {1: 1}
        assert plan.reasons == {3: "no kernel", 0: "A constant that no node reads."}
        assert plan.partition_of(1) == 1
        assert plan.delegated == {1, 2, 4}

    def test_shared_with_the_cpu_stays_there(self):
        g = graph([("GPU", [0, 10], [1], 1), ("CPU", [1, 10], [2], 2)], folded={10: (0,)})
        plan = plan_partitions(g, only_gpu)
        assert plan.folded == {}
        assert plan.reasons[0] == "A constant, also read by CPU node 2."
        # Its value is there only after a turn of the CPU; the GPU node waits for it as in TFLite.
        assert plan.partitions == ((1,),)

    def test_read_by_the_cpu_alone(self):
        g = graph([("CPU", [0, 10], [1], 1)], folded={10: (0,)})
        assert plan_partitions(g, only_gpu).reasons[0] == "A constant, read by CPU node 1."

    def test_output_of_the_model(self):
        g = graph([("GPU", [0, 10], [1], 1)], outputs=(1, 10), folded={10: (0,)})
        plan = plan_partitions(g, only_gpu)
        assert plan.reasons == {0: "A constant, also an output of the model."}

    def test_chain(self):
        # 0 expands, 1 and 2 convert what 0 makes.
        folded = {9: (0,), 10: (0, 1), 11: (0, 2)}
        g = graph([("GPU", [0, 10], [1], 3), ("GPU", [1, 11], [2], 4)], folded=folded)
        assert plan_partitions(g, only_gpu).folded == {0: 0, 1: 0, 2: 0}
        g = graph([("GPU", [0, 10], [1], 3), ("CPU", [1, 11], [2], 4)], folded=folded)
        plan = plan_partitions(g, only_gpu)
        assert plan.folded == {1: 0}
        assert set(plan.reasons) == {0, 2, 4}

    def test_excluded(self):
        g = graph([("GPU", [0, 10], [1], 1)], folded={10: (0,)})
        plan = plan_partitions(g, only_gpu, excluded={0: "asked"})
        assert plan.reasons == {0: "asked"}
        assert plan.partitions == ((1,),)

    def test_follows_a_dropped_partition(self):
        g = graph([("GPU", [0, 10], [1], 1), ("CPU", [1], [2], 2)], folded={10: (0,)})
        plan = plan_partitions(g, only_gpu, min_nodes=2)
        assert plan.delegated == set()
        assert plan.reasons[0] == "A constant, read by CPU node 1."


class TestExtract:
    G = graph(
        [("GPU", [5, 90, -1], [7]), ("CPU", [7], [8]), ("GPU", [8, 7, 6], [9]), ("GPU", [9], [3])],
        inputs=(5, 6),
        outputs=(3, 7),
        constants=(90,),
        folded={91: (9,)},
    )

    def test_by_id(self):
        sub = extract(self.G, (2, 3))
        assert [n.index for n in sub.nodes] == [2, 3]
        assert sub.inputs == (6, 7, 8)
        assert sub.outputs == (3,)
        assert set(sub.tensors) == {3, 6, 7, 8, 9}
        sub = extract(self.G, [0])
        assert (sub.inputs, sub.outputs) == ((5,), (7,))
        assert set(sub.tensors) == {5, 90, 7}
        assert sub.folded == {}

    def test_given_order(self):
        sub = extract(self.G, (2, 3), inputs=[8, 90, 7], outputs=[9, 3, 4])
        assert sub.inputs == (8, 7, 6)
        assert sub.outputs == (9, 3)


@st.composite
def graphs(draw):
    """Random acyclic graphs: each node reads earlier tensors and writes one or two."""
    count = draw(st.integers(1, 14))
    nodes, tensors = [], [0, 1]
    for index in range(count):
        reads = draw(st.lists(st.sampled_from(tensors), min_size=0, max_size=3))
        writes = [len(tensors) + i for i in range(draw(st.integers(1, 2)))]
        tensors += writes
        nodes.append((draw(st.sampled_from(["GPU", "CPU"])), reads, writes, 2 * index + 1))
    outputs = draw(st.lists(st.sampled_from(tensors), max_size=3))
    folded = {}
    if draw(st.booleans()):
        folded = {100 + i: (2 * i,) for i in range(draw(st.integers(0, count - 1)))}
        nodes = (
            [
                (op, [*reads, *draw(st.lists(st.sampled_from(sorted(folded)), max_size=2))], w, i)
                for op, reads, w, i in nodes
            ]
            if folded
            else nodes
        )
    return graph(nodes, inputs=(0, 1), outputs=outputs, folded=folded)


@given(graphs(), st.integers(0, 3), st.integers(1, 3))
@settings(max_examples=300, deadline=None)
def test_plan_is_a_schedule(g, max_partitions, min_nodes):
    plan = plan_partitions(g, only_gpu, max_partitions=max_partitions, min_nodes=min_nodes)
    every = {n.index for n in g.nodes} | {i for s in g.folded.values() for i in s}
    # Nothing is lost and nothing stands twice.
    listed = [i for p in plan.partitions for i in p]
    assert len(set(listed)) == len(listed)
    assert plan.delegated | plan.reasons.keys() == every
    assert plan.delegated.isdisjoint(plan.reasons)
    assert all(i in plan.delegated for i in listed)
    assert not max_partitions or len(plan.partitions) <= max_partitions
    assert all(len(p) >= min_nodes for p in plan.partitions)
    assert all(only_gpu(n, g) is None for n in g.nodes if n.index in plan.delegated)
    # Running whole partitions, and CPU nodes whenever they can, reaches every node.
    done = {t for t in g.tensors if t not in {w for n in g.nodes for w in n.outputs}}
    waiting = [tuple(p) for p in plan.partitions]
    by_index = {n.index: n for n in g.nodes}
    waiting += [(n.index,) for n in g.nodes if n.index in plan.reasons]
    while waiting:
        for group in waiting:
            sub = extract(g, group)
            if set(sub.inputs) <= done:
                for i in group:  # in the order listed
                    assert set(by_index[i].reads) <= done
                    done |= set(by_index[i].outputs)
                waiting.remove(group)
                break
        else:
            pytest.fail(f"stuck: {waiting}")


@given(graphs())
@settings(max_examples=100, deadline=None)
def test_extract_cuts_where_values_cross(g):
    plan = plan_partitions(g, only_gpu)
    for nodes in plan.partitions:
        sub = extract(g, nodes)
        inside = {t for n in sub.nodes for t in n.outputs}
        others = [n for n in g.nodes if n.index not in nodes]
        assert inside.isdisjoint(sub.inputs)
        assert set(sub.outputs) == inside & ({t for n in others for t in n.reads} | set(g.outputs))
        assert all(t in sub.tensors for n in sub.nodes for t in (*n.reads, *n.outputs))
