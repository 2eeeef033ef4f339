"""The priority search tree of pairs, kept up to date pair by pair.

Every node has one pair, and none below it has a younger older row: so whatever has left a window of any size is below
everything that has not. Pairs that rank before the node's split, or are it, are to its left, the others to its right.

The paper refers to McCreight (SIAM Journal on Computing 1985) for how the tree stays balanced. Here a node counts its
pairs. Where three quarters of them come to be on one side, Algorithm 1 builds that part of the tree anew: this takes
O(log s) a pair on average, and no branch has more than log(s) / log(4/3) nodes.
"""

from __future__ import annotations

from skyband.kernels.compiling import inlined, kernel, part
from skyband.study.baselines.pairs.staircase_published.kernels.arrays import FREE_NODE, NONE, ROOT, precedes

# -- slots by rank ---------------------------------------------------------------------------------------------------


@part
def _sift_down(slots, n, i, pairs):
    """Let slot i sink until no slot below it has a pair that ranks behind its own."""
    slot = slots[i]
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and precedes(pairs[slots[child]], pairs[slots[child + 1]]):
            child += 1
        if not precedes(pairs[slot], pairs[slots[child]]):
            break
        slots[i] = slots[child]
        i = child
    slots[i] = slot


@part
def sort_by_rank(slots, n, pairs):
    """Sort the first n slots by the ranks of their pairs, best first: heapsort, which takes no other room."""
    for i in range(n // 2 - 1, -1, -1):
        _sift_down(slots, n, i, pairs)
    for end in range(n - 1, 0, -1):
        slots[0], slots[end] = slots[end], slots[0]
        _sift_down(slots, end, 0, pairs)


@part
def _settle_by_rank(slots, n, pairs):
    """The same for slots that are nearly in order: each moves up to its place."""
    for i in range(1, n):
        slot, j = slots[i], i
        while j > 0 and precedes(pairs[slot], pairs[slots[j - 1]]):
            slots[j] = slots[j - 1]
            j -= 1
        slots[j] = slot


# -- nodes -----------------------------------------------------------------------------------------------------------


@inlined
def _new_node(tree, slot):
    node = tree.numbers[FREE_NODE]
    tree.numbers[FREE_NODE] = tree.left[node]
    tree.slot[node], tree.weight[node] = slot, 1
    tree.left[node], tree.right[node] = NONE, NONE
    return node


@inlined
def _free_node(tree, node):
    tree.left[node] = tree.numbers[FREE_NODE]
    tree.numbers[FREE_NODE] = node


@inlined
def _split_at(tree, node, pair):
    split = tree.split[node]
    split.score, split.a, split.b = pair.score, pair.a, pair.b


@inlined
def _is_leaf(tree, node):
    return tree.left[node] == NONE and tree.right[node] == NONE


@inlined
def _too_heavy(pairs_below, pairs_in_all):
    return 4 * pairs_below > 3 * pairs_in_all


# -- building --------------------------------------------------------------------------------------------------------


@part
def construct(tree, pairs, root, n):
    """Algorithm 1, PrioritySearchTree(P), without recursion: P is the first n slots of `keys`, best first."""
    keys, stack = tree.keys, tree.stack
    stack[0], stack[1], stack[2] = root, 0, n
    depth = 1
    while depth > 0:
        # What waits on the stack are nodes without a pair, and the ranges of `keys` that belong below them.
        depth -= 1
        node, low, high = stack[3 * depth], stack[3 * depth + 1], stack[3 * depth + 2]
        youngest = low
        for i in range(low + 1, high):
            if pairs[keys[i]].a > pairs[keys[youngest]].a:
                youngest = i
        tree.slot[node], tree.weight[node] = keys[youngest], high - low
        for i in range(youngest, low, -1):
            keys[i] = keys[i - 1]
        low += 1
        middle = low + ((high - low + 1) >> 1)
        tree.left[node], tree.right[node] = NONE, NONE
        if low < middle:
            _split_at(tree, node, pairs[keys[middle - 1]])
            tree.left[node] = _new_node(tree, NONE)
            stack[3 * depth], stack[3 * depth + 1], stack[3 * depth + 2] = tree.left[node], low, middle
            depth += 1
        if middle < high:
            tree.right[node] = _new_node(tree, NONE)
            stack[3 * depth], stack[3 * depth + 1], stack[3 * depth + 2] = tree.right[node], middle, high
            depth += 1


@part
def rebuild(tree, pairs, root):
    """Build the part of the tree below this node anew."""
    n, depth, stack = 0, 1, tree.stack
    stack[0] = root
    while depth > 0:
        depth -= 1
        node = stack[depth]
        tree.keys[n] = tree.slot[node]
        n += 1
        for child in (tree.left[node], tree.right[node]):
            if child != NONE:
                stack[depth] = child
                depth += 1
        if node != root:
            _free_node(tree, node)
    sort_by_rank(tree.keys, n, pairs)
    construct(tree, pairs, root, n)


# -- one pair --------------------------------------------------------------------------------------------------------


@part
def insert(tree, pairs, slot):
    """Put the pair of this slot into the tree. Keep the younger pair of the two at each node, carry the other down."""
    node, heavy = tree.numbers[ROOT], NONE
    if node == NONE:
        tree.numbers[ROOT] = _new_node(tree, slot)
        return
    while True:
        tree.weight[node] += 1
        if pairs[slot].a > pairs[tree.slot[node]].a:
            slot, tree.slot[node] = tree.slot[node], slot
        if _is_leaf(tree, node):
            _split_at(tree, node, pairs[slot])
        goes_right = precedes(tree.split[node], pairs[slot])
        child = tree.right[node] if goes_right else tree.left[node]
        if child == NONE:
            break
        if heavy == NONE and _too_heavy(tree.weight[child] + 1, tree.weight[node]):
            heavy = node
        node = child
    if goes_right:
        tree.right[node] = _new_node(tree, slot)
    else:
        tree.left[node] = _new_node(tree, slot)
    if heavy != NONE:
        rebuild(tree, pairs, heavy)


@part
def remove(tree, pairs, slot):
    """Take the pair of this slot out of the tree. The younger pair below it moves up, and so on down to a leaf."""
    node, above, heavy, is_found = tree.numbers[ROOT], NONE, NONE, False
    while True:
        tree.weight[node] -= 1
        is_found |= tree.slot[node] == slot
        left, right = tree.left[node], tree.right[node]
        if left == NONE and right == NONE:
            break
        if is_found:
            goes_right = left == NONE or (right != NONE and pairs[tree.slot[right]].a > pairs[tree.slot[left]].a)
            tree.slot[node] = tree.slot[right if goes_right else left]
        else:
            goes_right = precedes(tree.split[node], pairs[slot])
        other = left if goes_right else right
        if heavy == NONE and other != NONE and _too_heavy(tree.weight[other], tree.weight[node]):
            heavy = node
        above, node = node, right if goes_right else left
    if above == NONE:
        tree.numbers[ROOT] = NONE
    elif tree.left[above] == node:
        tree.left[above] = NONE
    else:
        tree.right[above] = NONE
    _free_node(tree, node)
    if heavy != NONE:
        rebuild(tree, pairs, heavy)


# -- questions -------------------------------------------------------------------------------------------------------


@part
def top_pairs(tree, pairs, k, start, found):
    """Algorithm 2, TopPairs(PST, k, n): the k best pairs without a row numbered before `start`.

    Writes their slots to `found`, best first, and returns how many there are. On the stack a marked node x is -x - 1.
    """
    stack, visited, depth = tree.stack, 0, 0
    root = tree.numbers[ROOT]
    if root != NONE and pairs[tree.slot[root]].a >= start:
        stack[0] = root
        depth = 1
    while visited < k and depth > 0:
        # Whatever ranks before the worst pair visited has been visited, or belongs to a marked node.
        node = stack[depth - 1]
        if node < 0 or _is_leaf(tree, node):
            found[visited] = tree.slot[-node - 1 if node < 0 else node]
            visited += 1
            depth -= 1
            continue
        stack[depth - 1] = -node - 1
        for child in (tree.right[node], tree.left[node]):
            if child != NONE and pairs[tree.slot[child]].a >= start:
                stack[depth] = child
                depth += 1
    candidates = visited
    for i in range(depth):
        if stack[i] < 0:
            found[candidates] = tree.slot[-stack[i] - 1]
            candidates += 1
    # Cousins were visited in order; only a node and those below it may be in any order.
    _settle_by_rank(found, candidates, pairs)
    return min(k, candidates)


@kernel
def search(tree, pairs, k, start, found):
    """As `top_pairs`, for one question."""
    return top_pairs(tree, pairs, k, start, found)


@kernel
def index(tree, pairs, slots, n):
    """Make an empty tree that of the pairs of the first n slots."""
    if n > 0:
        for i in range(n):
            tree.keys[i] = slots[i]
        tree.numbers[ROOT] = _new_node(tree, NONE)
        construct(tree, pairs, tree.numbers[ROOT], n)


# -- many questions, each by itself: for measuring --------------------------------------------------------------------


@kernel
def search_each(tree, pairs, k, start, found):
    """Algorithm 2 for each question; returns how many pairs all answers have."""
    n = 0
    for q in range(len(k)):
        n += top_pairs(tree, pairs, k[q], start[q], found)
    return n


@kernel
def scan_each(pairs, by_score, held, k, start, found):
    """The straightforward way of section 4.1 for each question: through the skyband, best first, until k are found."""
    n = 0
    for q in range(len(k)):
        count, r = 0, 0
        while r < held and count < k[q]:
            if pairs[by_score[r]].a >= start[q]:
                found[count] = by_score[r]
                count += 1
            r += 1
        n += count
    return n


@kernel
def copy_each(answers, ends, found):
    """What section 7.1.2 lets an oracle do, for each question: it knows the answer, and somebody has to copy it."""
    for q in range(len(ends) - 1):
        for r in range(ends[q], ends[q + 1]):
            found[r - ends[q]] = answers[r]
    return ends[-1]
