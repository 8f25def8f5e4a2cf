/* Loss: the achieved one, and whether chance alone explains its difference from the requested
 * one. */
#ifndef STEELYARD_NETEM_SPEC_LOSS_STATISTICS_H
#define STEELYARD_NETEM_SPEC_LOSS_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

#include "netem/spec/spec.h"

/* How many dropped packets of so many are within chance, at 99.9 %: one good run in a thousand is
 * condemned, where 95 % would condemn one in twenty. */
struct sy_drops {
	bool judged; /* false: there are too few packets */
	double loss; /* requested, a fraction: in the long run */
	int64_t low, high;
};

/* Of `packets` that left our qdiscs or were dropped there; `least`: where a marked packet was
 * counted twice (ecn=), so many were there at least. With duplicate= the copies are among them, and
 * netem (kernel 6.18: netem_enqueue()) keeps one of a packet that is both lost and doubled: the
 * loss may lie anywhere from p(1-d)/(1+d) to p. */
struct sy_drops sy_drops_expected(const struct sy_netem *spec, int64_t least, int64_t packets);

/* A binomial proportion's 95 % interval: E. B. Wilson, J. Am. Stat. Assoc. 22 (1927) 209.
 * `of` is more than 0. */
void sy_wilson(int64_t hits, int64_t of, double *low, double *high);

/* The probability of a count as far from the mean as `hits` of `of`, or farther: the exact tail
 * of the binomial distribution on the side of `hits`. */
double sy_binomial_tail(int64_t hits, int64_t of, double p);

/* Mean loss of the two-state chain in the long run, and the variance of the mean times the number
 * of packets. In the bad state p/(p+r) of the time, which loses 1-h, and else 1-k (Gilbert 1960,
 * Elliott 1963; the chain of sch_netem.c, loss_gilb_ell()); neighbours are correlated by 1-p-r. */
double sy_gemodel_loss(const struct sy_gemodel *model, double *variance);

/* The same of the chain of four states (sch_netem.c, loss_4state(): a packet is lost when the chain
 * comes to state 3 or 4): stationary shares from the balance of flows, the variance from Poisson's
 * equation (I - P) h = f - mean: sum of share (2 (f - mean) h - (f - mean)^2). `bursts` (may be
 * NULL): how often one begins, a packet. */
double sy_state_loss(const struct sy_loss_state *state, double *variance, double *bursts);

/* Mean of the requested loss, whichever model it is, a fraction; 0: no loss. */
double sy_mean_loss(const struct sy_netem *spec);

/* So many hits of so many packets are within chance, each hit with chance `p`, where the packets
 * were between `least` and `most`: 99.9 %, as above. */
struct sy_drops sy_hits_expected(double p, int64_t least, int64_t most);

/* The same where each packet's chance is between two values. */
struct sy_drops sy_hits_between(double least_chance, double most_chance, int64_t least,
				int64_t most);

#endif
