// Rays through half-spaces on a GPU: the walk of kernel.py, with one thread for each ray.
//
// Margins are straight lines from one event to the next: the end of a range, an edge of a binned column, the switch of a
// block. Columns that move in whole steps are left to kernel.py. Operations and their order are the same, so results are
// equal to the last bit.

const int END = 0, EDGE = 1, SWITCH = 2;  // kinds of event
const double CLOSE = 1e-6;                // a flip this soon after a doubtful one is taken for the same

struct Size {
    long long rows, directions;
    int width, margins, events, categories, movers, switches;
};

FUNCTION double next_above(double k) { return k < INFINITE ? above(k) : k; }

// Whether x has passed an edge at k.
FUNCTION bool passed(double k, double x, double step, double edge) {
    double there = x + k * step;
    return step > 0.0 ? there > edge : there <= edge;
}

// The largest k at which x has not yet passed an edge; infinite if it never does.
FUNCTION double pass_edge(double x, double step, double edge) {
    double size = fabs(edge);
    double gap = edge >= 0.0 ? next_above(size) - size : size - below(size);
    double k = ((edge - x) + 0.5 * gap) / step;
    if (0.0 <= k && k < LARGEST_DOUBLE) {
        for (int guess = 0; guess < 8; guess++) {
            if (passed(k, x, step, edge)) {
                if (k == 0.0) break;
                k = below(k);
            } else if (!passed(next_above(k), x, step, edge)) {
                k = next_above(k);
            } else {
                return k;
            }
        }
    }
    if (!passed(LARGEST_DOUBLE, x, step, edge)) return INFINITE;
    long long first = 0, last = BITS(LARGEST_DOUBLE);
    while (last - first > 1) {
        long long middle = first + ((last - first) >> 1);
        if (passed(DOUBLE(middle), x, step, edge)) last = middle;
        else first = middle;
    }
    return DOUBLE(first);
}

// Narrow the stretch (low, high] to where a + s k is positive.
FUNCTION void narrow(double &low, double &high, double a, double s, bool closed) {
    if (s > 0.0) low = larger(low, -a / s * (1.0 + 1e-15));
    else if (s < 0.0) high = smaller(high, -a / s);
    else if (!(a > 0.0 || (closed && a == 0.0))) low = INFINITE;
}

// First favourable scalar of every row along every direction; NaN as in kernel.py.
KERNEL follow_rays(const Size *size_, const double *Z, const double *base, const double *unsure,
                   const unsigned char *closed, const double *limit, const double *begin, int many_begins,
                   const long long *first_mover, const long long *column, const double *step, const double *low,
                   const double *high, const long long *first_switch, const long long *block, const long long *width,
                   const double *bound, const double *weight, const long long *first_edge, const double *edge,
                   const double *jump, const double *gain, double *at, int *kind, int *which, int *owner,
                   int *code, double *margins, double *out) {
    const Size size = *size_;
    const long long me = FIRST, stride = THREADS;
    const int m = size.margins;
    at += me, kind += me, which += me, owner += me, code += me, margins += me;  // interleaved
    double *A = margins, *s = A + m * stride, *U = s + m * stride;
    for (long long ray = me; ray < size.rows * size.directions; ray += stride) {
        const long long i = ray % size.rows, d = ray / size.rows;
        const double *row = Z + i * size.width, *unclear = unsure + i * m;
        const double last = limit[ray];
        double doubt = -1.0, k0 = many_begins ? begin[ray] : begin[0], answer = INFINITE;
        if (k0 > 0.0) k0 = below(k0);  // the first k that counts lies just beyond k0
        for (int j = 0; j < m; j++) A[j * stride] = base[i * m + j], s[j * stride] = 0.0;

        // Events along the ray
        int n = 0, moving = 0;
        const int c0 = first_mover[d], c1 = first_mover[d + 1], q0 = first_switch[d], q1 = first_switch[d + 1];
        for (int c = c0; c < c1; c++) {
            const bool rising = step[c] > 0.0;
            double x = row[column[c]];
            const double end = rising ? high[c] : low[c];
            if (rising ? x < low[c] : x > high[c]) {  // it enters its range as soon as it moves
                const double inside = rising ? low[c] : high[c];
                for (int j = 0; j < m; j++) A[j * stride] += weight[c * m + j] * (inside - x);
                for (int e = first_edge[c]; e < first_edge[c + 1]; e++)
                    if (rising ? x <= edge[e] && edge[e] < inside : inside <= edge[e] && edge[e] < x)
                        for (int j = 0; j < m; j++) A[j * stride] += rising ? jump[e * m + j] : -jump[e * m + j];
                x = inside;
            }
            const bool goes = rising ? x < end : x > end;
            if (!goes) continue;
            moving++;
            for (int j = 0; j < m; j++) s[j * stride] += weight[c * m + j] * step[c];
            const double room = fabs(end - x);
            if (room < INFINITE) {
                at[n * stride] = room / fabs(step[c]);
                kind[n * stride] = END, which[n * stride] = c, owner[n * stride] = c;
                n++;
            }
            for (int e = first_edge[c]; e < first_edge[c + 1]; e++)
                if (rising ? x <= edge[e] && edge[e] < end : end <= edge[e] && edge[e] < x) {
                    at[n * stride] = pass_edge(x, step[c], edge[e]);
                    kind[n * stride] = EDGE, which[n * stride] = e, owner[n * stride] = c;
                    n++;
                }
        }
        for (int q = q0; q < q1; q++) {
            int mine = 0;
            for (int category = 0; category < width[q]; category++)
                if (row[block[q] + category] > 0.5) {
                    mine = category;
                    break;
                }
            code[(q - q0) * stride] = mine;
            if (bound[(long long)q * size.categories + mine] < INFINITE) {
                at[n * stride] = bound[(long long)q * size.categories + mine];
                kind[n * stride] = SWITCH, which[n * stride] = q, owner[n * stride] = q;
                n++;
            }
        }
        for (int e = 1; e < n; e++) {  // they are few
            const double k = at[e * stride];
            const int kind_ = kind[e * stride], which_ = which[e * stride], owner_ = owner[e * stride];
            int index = e;
            for (; index > 0 && at[(index - 1) * stride] > k; index--) {
                at[index * stride] = at[(index - 1) * stride], kind[index * stride] = kind[(index - 1) * stride];
                which[index * stride] = which[(index - 1) * stride], owner[index * stride] = owner[(index - 1) * stride];
            }
            at[index * stride] = k, kind[index * stride] = kind_, which[index * stride] = which_;
            owner[index * stride] = owner_;
        }

        for (int event = 0; event <= n; event++) {
            const double k1 = event < n ? smaller(at[event * stride], last) : last;
            if (k1 > k0) {  // one stretch (k0, k1] of straight lines
                double from = k0, to = k1;
                for (int j = 0; j < m; j++) {
                    U[j * stride] = A[j * stride] + unclear[j];
                    narrow(from, to, U[j * stride], s[j * stride], closed[j] != 0);
                }
                double found = next_above(from), upto = next_above(to);
                if (found < upto) {
                    const double since = from;
                    from = k0;
                    for (int j = 0; j < m; j++) narrow(from, to, A[j * stride], s[j * stride], closed[j] != 0);
                    found = next_above(from), upto = next_above(to);
                    if (!(found < upto) && doubt < 0.0) doubt = since;
                }
                if (found < upto) {
                    if (found <= last) answer = found;
                    break;
                }
                k0 = k1;
            }
            if (event == n || k0 >= last) break;
            const int c = owner[event * stride], e = which[event * stride];
            if (kind[event * stride] == END) {
                const bool rising = step[c] > 0.0;
                moving--;
                const double x = rising ? larger(row[column[c]], low[c]) : smaller(row[column[c]], high[c]);
                const double end = rising ? high[c] : low[c];
                for (int j = 0; j < m; j++) {  // adding and subtracting a slope leaves rounding errors
                    s[j * stride] = moving ? s[j * stride] - weight[c * m + j] * step[c] : 0.0;
                    A[j * stride] += weight[c * m + j] * (end - x);
                }
            } else if (kind[event * stride] == EDGE) {
                for (int j = 0; j < m; j++) A[j * stride] += step[c] > 0.0 ? jump[e * m + j] : -jump[e * m + j];
            } else {
                const double *gains = gain + ((long long)c * size.categories + code[(c - q0) * stride]) * m;
                for (int j = 0; j < m; j++) A[j * stride] += gains[j];
            }
        }
        if (doubt >= 0.0 && answer > doubt + CLOSE * larger(1.0, doubt)) answer = UNDECIDED;
        out[ray] = answer;
    }
}
