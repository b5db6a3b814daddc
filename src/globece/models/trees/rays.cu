// Rays through trees on a GPU: the sweep of kernel.py, with one thread for each ray.
//
// For each tree a thread keeps the leaf and the scalar at which it changes next, and a tournament over the trees tells
// which changes first. When a tree changes, the way down from its root is walked again: it gives the new leaf and the
// next scalar at once. Scalars are the same doubles as in kernel.py, and an outcome in doubt is decided by adding the
// leaves again as the estimator does, so results are equal to the last bit.
//
// A ray that cannot be decided here, since exponentials round differently, gives NaN; the caller follows it on the CPU.

const int LINEAR = 1, WHOLE = 2, SWITCH = 3;
const int REACHES = 0, LARGEST = 1;  // kinds of rule whose doubts are settled here
const double ROUNDING = 4e-15;  // more than the relative rounding error of a position and its inverse

struct Node {
    double threshold;  // a value above it goes to the second child; at a leaf the score it adds
    int slot;          // slot tested; ~odd for an odd predicate; at a leaf its row of the outputs
    int child;         // twice the first child, plus 1 if a missing value goes to the second; negative at a leaf
};

struct Move {  // how a direction moves a slot
    double step, pace, low, high;
    int kind;  // 0 where it does not
    int block, category, target, bounds;  // of a switch; category -1 is the slot of the block itself
    int unused;
};

struct Rule {
    double cut, divisor, origin, boundary, band, drift;
    int kind, favourable, single, scalar, outputs, leaf_width;
};

struct Size {
    long long rows, directions;
    int width, blocks, trees, places;  // places of the tournament: a power of two, at least the trees
};

struct Motion {  // how a slot moves along the ray at hand
    double step, low, high, origin, other, when, final;
    int kind;
};

// -- one slot along a ray ------------------------------------------------------------------------------------------

FUNCTION double value_at(double k, const Motion &on) {
    if (on.kind == SWITCH) return k >= on.when ? on.other : on.origin;
    double moved = k * on.step;
    if (on.kind == WHOLE) moved = copysign(ceil(fabs(moved) - 0.5), on.step);
    double value = on.origin + moved;
    if (value < on.low) value = on.low;
    if (value > on.high) value = on.high;
    return value;
}

FUNCTION double flip_at(double limit, const Motion &on, double threshold) {
    if (on.kind == SWITCH) return on.when;
    bool rising = on.step > 0.0;
    if ((on.origin > threshold) == rising) return SMALLEST_DOUBLE;
    double k;
    if (on.kind == LINEAR) {
        double size = fabs(threshold);
        double gap = threshold >= 0.0 ? above(size) - size : size - below(size);
        k = ((threshold - on.origin) + 0.5 * gap) / on.step;
    } else if (rising) {
        k = above((floor(threshold - on.origin) + 0.5) / on.step);
    } else {
        k = above((ceil(on.origin - threshold) - 0.5) / -on.step);
    }
    if (k > 0.0 && k <= limit) {
        for (int guess = 0; guess < 8; guess++) {
            if ((value_at(k, on) > threshold) != rising) {
                k = above(k);
                if (k > limit) break;
            } else if ((value_at(below(k), on) > threshold) == rising) {
                k = below(k);
            } else {
                return k;
            }
        }
    }
    long long first = 0, last = BITS(limit);
    while (last - first > 1) {
        long long middle = first + ((last - first) >> 1);
        if ((value_at(DOUBLE(middle), on) > threshold) == rising) last = middle;
        else first = middle;
    }
    return DOUBLE(last);
}

// The slot's motion from x up to the limit; whether it moves.
FUNCTION bool moves(const Move &move, double x, const int *codes, const double *bounds, double limit, Motion &on) {
    if (move.kind == 0 || x != x) return false;
    on.kind = move.kind;
    if (move.kind == SWITCH) {
        int code = codes[move.block];
        double bound = bounds[move.bounds + code];
        if (!(bound < limit)) return false;
        if (move.category < 0) on.other = move.target;
        else if (move.category == code) on.other = 0.0;
        else if (move.category == move.target) on.other = 1.0;
        else return false;
        on.origin = x;
        on.when = above(bound);
        on.final = on.other;
        return true;
    }
    on.step = move.step;
    on.low = move.low;
    on.high = move.high;
    if (on.step > 0.0 ? x > on.high : x < on.low) return false;  // away from its range
    on.origin = on.step > 0.0 ? larger(x, on.low) : smaller(x, on.high);
    on.final = value_at(limit, on);
    return on.final != x;
}

// -- trees ---------------------------------------------------------------------------------------------------------

struct Trees {
    const Node *nodes;
    const int *roots, *output;
    const double *outputs;
    const int *odd_slot, *odd_start;
    const double *odd_cut;
    const unsigned char *odd_side;
    int width, leaf_width;
};

FUNCTION int piece_of(const Trees &trees, int start, double value, bool category) {
    if (category) return start + (int)value;
    while (value > trees.odd_cut[start]) start++;
    return start;
}

// The cut at which a slot first changes an odd predicate before its final value; whether there is one.
FUNCTION bool next_cut(const Trees &trees, int odd, bool category, double here, double final, double &cut) {
    int start = trees.odd_start[odd];
    int piece = piece_of(trees, start, here, category), last = piece_of(trees, start, final, category);
    int side = trees.odd_side[piece], onwards = last > piece ? 1 : -1;
    cut = 0.0;
    if (category) return trees.odd_side[last] != side;
    while (piece != last) {
        piece += onwards;
        if (trees.odd_side[piece] != side) {
            cut = trees.odd_cut[onwards > 0 ? piece - 1 : piece];
            return true;
        }
    }
    return false;
}

// The leaf of a tree at k, and in `next` the scalar at which a split on the way to it changes next.
FUNCTION int descend(const Trees &trees, int root, const double *row, const int *codes, const Move *move,
                     const double *bounds, double k, double limit, double &next) {
    int node = root;
    next = INFINITE;
    for (;;) {
        const Node here = trees.nodes[node];
        if (here.child < 0) return node;
        bool is_odd = here.slot < 0;
        int slot = is_odd ? trees.odd_slot[~here.slot] : here.slot;
        bool category = slot >= trees.width;
        double value = category ? (double)codes[slot - trees.width] : row[slot];
        Motion on = {};
        const Move how = move[slot];
        if (moves(how, value, codes, bounds, limit, on)) {
            if (k > 0.0) value = value_at(k, on);
            double cut = here.threshold;
            bool changes = is_odd ? next_cut(trees, ~here.slot, category, value, on.final, cut)
                                  : (value > cut) != (on.final > cut);
            if (changes) {
                bool may_be_next = true;
                if (on.kind != SWITCH) {  // with rounding and half steps, the change comes no earlier than this
                    double far = on.step > 0.0 ? cut - on.origin : on.origin - cut;
                    far -= ROUNDING * (fabs(cut) + fabs(on.origin));
                    if (on.kind == WHOLE) far -= 0.5;
                    may_be_next = !(far * how.pace * (1.0 - 1e-14) > next);
                }
                if (may_be_next) {
                    double flip = flip_at(limit, on, cut);
                    if (flip < next) next = flip;
                }
            }
        }
        bool second = value > here.threshold;
        if (value != value) second = (here.child & 1) != 0;
        else if (is_odd) second = trees.odd_side[piece_of(trees, trees.odd_start[~here.slot], value, category)] != 0;
        node = (here.child >> 1) + second;
    }
}

// The sums of the leaves in the estimator's order, in its precision (`native`) or in float64.
FUNCTION void add_up(const Trees &trees, const Rule &rule, const double *start, int n_trees, const int *now,
                     long long stride, bool native, double *sums) {
    for (int j = 0; j < rule.outputs; j++) sums[j * stride] = start[j];
    for (int tree = 0; tree < n_trees; tree++) {
        int leaf = trees.nodes[now[tree * stride]].slot, output = trees.output[tree];
        int first = output < 0 ? 0 : output, last = output < 0 ? rule.outputs : output + 1;
        for (int j = first; j < last; j++) {
            double part = trees.outputs[(long long)leaf * trees.leaf_width + j - first];
            double &sum = sums[j * stride];
            if (native && rule.single) sum = (double)((float)sum + (float)part);
            else sum += part;
        }
    }
}

// How far sums are on the favourable side, in exact arithmetic.
FUNCTION double lead(const Rule &rule, const double *sums, long long stride) {
    if (rule.kind == REACHES) return sums[0] - rule.cut;
    double rival = -INFINITE;
    for (int j = 0; j < rule.outputs; j++)
        if (j != rule.favourable) rival = larger(rival, sums[j * stride]);
    return (sums[rule.favourable * stride] - rival) / rule.divisor;
}

FUNCTION bool decide(const Rule &rule, const double *sums, long long stride) {
    if (rule.kind == REACHES) return sums[0] >= rule.cut;
    double mine = sums[rule.favourable * stride] / rule.divisor;
    for (int j = 0; j < rule.outputs; j++) {
        double rival = sums[j * stride] / rule.divisor;
        if (rival > mine || (rival == mine && j < rule.favourable)) return false;
    }
    return true;
}

// -- the tournament over the trees: each place holds the loser of its match ----------------------------------------

struct Tournament {
    double *key;
    int *who;
    long long stride;
    double first;  // the winner
    int tree;
};

FUNCTION void meet(Tournament &at, int place, double &k, int &tree) {
    double other = at.key[place * at.stride];
    if (other < k) {
        int who = at.who[place * at.stride];
        at.key[place * at.stride] = k;
        at.who[place * at.stride] = tree;
        k = other;
        tree = who;
    }
}

// Trees enter in order: the first to reach a place waits there for the other.
FUNCTION void enter(Tournament &at, int places, double k, int tree) {
    int place = tree + places;
    while (place > 1 && (place & 1)) {
        place >>= 1;
        meet(at, place, k, tree);
    }
    if (place > 1) {
        at.key[(place >> 1) * at.stride] = k;
        at.who[(place >> 1) * at.stride] = tree;
    } else {
        at.first = k;
        at.tree = tree;
    }
}

// The winner changes its scalar.
FUNCTION void replay(Tournament &at, int places, double k) {
    int tree = at.tree;
    for (int place = (tree + places) >> 1; place > 0; place >>= 1) meet(at, place, k, tree);
    at.first = k;
    at.tree = tree;
}

// -- kernels -------------------------------------------------------------------------------------------------------

// The category of each block in each row.
KERNEL find_codes(const Size *size_, const double *Z, const int *block_start, const int *block_stop, int *codes) {
    const Size size = *size_;
    for (long long i = FIRST; i < size.rows * size.blocks; i += THREADS) {
        const double *row = Z + i / size.blocks * size.width;
        int first = block_start[i % size.blocks], best = first;
        for (int c = first + 1; c < block_stop[i % size.blocks]; c++)
            if (row[c] > row[best]) best = c;
        codes[i] = best - first;
    }
}

// First favourable scalar, not below `start`, of every row along every direction.
KERNEL follow_rays(const Size *size_, const Rule *rule_, const Node *nodes, const int *roots, const int *output,
                   const double *outputs, const int *odd_slot, const int *odd_start, const double *odd_cut,
                   const unsigned char *odd_side, const double *sum_start, const Move *move, const double *bounds,
                   const double *Z, const int *codes, const double *limit, const double *start, int many_starts,
                   int *now, double *key, int *who, double *sums, double *out) {
    const Size size = *size_;
    const Rule rule = *rule_;
    const Trees trees = {nodes,   roots,    output,     outputs,         odd_slot, odd_start,
                         odd_cut, odd_side, size.width, rule.leaf_width};
    const long long me = FIRST, stride = THREADS;
    now += me;  // memory is interleaved: neighbouring threads use neighbouring addresses
    sums += me;
    double *running = sums + rule.outputs * stride;
    const int slots = size.width + size.blocks;
    for (long long ray = me; ray < size.rows * size.directions; ray += stride) {
        const long long at = ray % size.rows, d = ray / size.rows;
        const double furthest = smaller(limit[ray], LARGEST_DOUBLE);
        const double earliest = larger(many_starts ? start[ray] : start[0], SMALLEST_DOUBLE);
        out[ray] = INFINITE;
        if (!(furthest >= earliest)) continue;
        const double *row = Z + at * size.width;
        const int *code = codes + at * size.blocks;
        const Move *mine = move + d * slots;

        double total = rule.origin;
        Tournament first = {key + me, who + me, stride, INFINITE, 0};
        for (int tree = 0; tree < size.places; tree++) {
            double next = INFINITE;
            if (tree < size.trees) {
                int leaf = descend(trees, roots[tree], row, code, mine, bounds, 0.0, furthest, next);
                now[tree * stride] = leaf;
                total += nodes[leaf].threshold;
            }
            enter(first, size.places, next, tree);
        }
        if (!rule.scalar) add_up(trees, rule, sum_start, size.trees, now, stride, false, running);

        double k = 0.0;
        int changes = size.trees;
        bool stuck = false;
        while (!stuck) {
            // Favourable at this k?
            double ahead = rule.scalar ? total - rule.boundary : lead(rule, running, stride);
            double slack = rule.band + rule.drift * changes;
            bool favourable = ahead > slack;
            if (!favourable && ahead >= -slack) {
                if (rule.kind != REACHES && rule.kind != LARGEST) {
                    out[ray] = UNDECIDED;
                    break;
                }
                add_up(trees, rule, sum_start, size.trees, now, stride, true, sums);
                favourable = decide(rule, sums, stride);
            }
            if (favourable && k >= earliest) {
                out[ray] = k;
                break;
            }
            if (favourable && first.first > earliest) {
                out[ray] = earliest;
                break;
            }
            if (first.first == INFINITE) break;

            // On to the next k: every tree that changes there
            k = first.first;
            while (first.first == k && !stuck) {
                const int tree = first.tree, before = now[tree * stride];
                double next;
                const int leaf = descend(trees, roots[tree], row, code, mine, bounds, k, furthest, next);
                replay(first, size.places, next);
                stuck = !(next > k);
                if (leaf == before) continue;
                now[tree * stride] = leaf;
                changes++;
                if (rule.scalar) {
                    total += nodes[leaf].threshold - nodes[before].threshold;
                } else {
                    const int from = nodes[before].slot, to = nodes[leaf].slot;
                    const int begin = output[tree] < 0 ? 0 : output[tree];
                    const int end = output[tree] < 0 ? rule.outputs : begin + 1;
                    for (int j = begin; j < end; j++)
                        running[j * stride] += outputs[(long long)to * rule.leaf_width + j - begin] -
                                               outputs[(long long)from * rule.leaf_width + j - begin];
                }
            }
        }
        if (stuck) out[ray] = UNDECIDED;  // which no monotone motion can cause; without end otherwise
    }
}
