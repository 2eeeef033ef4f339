"""The compiled loop of `naive` that finds a row's best partners."""

from __future__ import annotations

from skyband.kernels.compiling import kernel


@kernel
def best_partners(score, first, k, partner, partner_score):
    """Find the k best of these scores, best first, of equal ones the younger partner's; partners count from `first`."""
    n = 0
    for i in range(len(score)):
        s = score[i]
        if s != s or (n == k and s < partner_score[k - 1]):
            continue
        j = n if n < k else k - 1
        # Partners come from the oldest to the youngest, so of equal scores the later one goes first.
        while j > 0 and partner_score[j - 1] <= s:
            partner_score[j], partner[j] = partner_score[j - 1], partner[j - 1]
            j -= 1
        partner_score[j], partner[j] = s, first + i
        n = min(n + 1, k)
    return n
