/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The model of tcp_bbr3 as numbers: state and arithmetic, no sockets. Names are those of the draft;
 * volumes are packets, and rates packets per us.
 */
#ifndef BBR3_MODEL_H
#define BBR3_MODEL_H

#include <linux/math64.h>
#include <net/tcp.h>

/* Rates are Q24: from 0.06 packets/s to 256 packets/us, 3 Tbit/s of 1500 bytes. */
#define BBR3_RATE_SHIFT		24
/* Gains are Q8. */
#define BBR3_GAIN_SHIFT		8
#define BBR3_GAIN_ONE		256U
/* A bound that is not set: of a rate, or of a volume. */
#define BBR3_INFINITE		U32_MAX
/* MinPipeCwnd, packets: a receiver that acknowledges each second one keeps the pipe filled. */
#define BBR3_MIN_CWND		4U
/* 1/LossThresh: one packet of 50 may be lost. */
#define BBR3_PACKETS_PER_LOSS	50U

/* ProbeRTTInterval, MinRTTFilterLen and ProbeRTTDuration. */
#define BBR3_PROBE_RTT_INTERVAL	(5 * HZ)
#define BBR3_MIN_RTT_WINDOW	(10 * HZ)
#define BBR3_PROBE_RTT_DURATION	msecs_to_jiffies(200)
/* ms between two probes for bandwidth: the least, and up to how many more. */
#define BBR3_PROBE_WAIT_MS	2000U
#define BBR3_PROBE_SPREAD_MS	1000U
/* Rounds after which a probe is due at the latest, as Reno's; the bits of its counter hold them. */
#define BBR3_RENO_ROUNDS	63U
/* Rounds without growth that show a full pipe. */
#define BBR3_FULL_BW_ROUNDS	3
/* ACKs in a round that reveal losses, for Startup to end: BBRStartupFullLossCnt. */
#define BBR3_STARTUP_LOSSES	6
/* Rounds of Drain. */
#define BBR3_DRAIN_ROUNDS	3
/* Rounds in a slot of extra_acked: the two hold ExtraAckedFilterLen, 10. */
#define BBR3_AGGREGATION_ROUNDS	5

enum bbr3_state {
	BBR3_STARTUP,
	BBR3_DRAIN,
	BBR3_DOWN,
	BBR3_CRUISE,
	BBR3_REFILL,
	BBR3_UP,
	BBR3_PROBE_RTT,
};

/* Gains, Q8. Startup's is 4 ln 2 = 2.7726, rounded up: the least that doubles in each round. */
static const struct {
	u16 pacing;
	u16 cwnd;
} bbr3_gains[] = {
	[BBR3_STARTUP]		= { 710, 512 },
	[BBR3_DRAIN]		= { 128, 512 },
	[BBR3_DOWN]		= { 230, 512 },
	[BBR3_CRUISE]		= { 256, 512 },
	[BBR3_REFILL]		= { 256, 512 },
	[BBR3_UP]		= { 320, 576 },
	[BBR3_PROBE_RTT]	= { 256, 128 },
};

/* The meaning of ACKs for a probe. */
enum bbr3_acks {
	BBR3_ACKS_INIT,
	BBR3_ACKS_REFILLING,
	BBR3_ACKS_STARTING,
	BBR3_ACKS_FEEDBACK,
	BBR3_ACKS_STOPPING,
};

/* The flow's model, and where it is in its cycle. */
struct bbr3 {
	u32 min_rtt_us;			/* least round trip of 10 s; U32_MAX: none yet */
	u32 min_rtt_stamp;		/* when it was measured, jiffies */
	u32 probe_rtt_min_us;		/* least round trip of 5 s; U32_MAX: none yet */
	u32 probe_rtt_min_stamp;	/* when it was measured, jiffies */
	u32 phase_stamp;		/* when the cycle began; or ProbeRTT may end; jiffies */
	u32 round_delivered;		/* tp->delivered when the round began */
	u32 loss_round_delivered;	/* the same of the round of losses */
	u32 loss_round_lost;		/* tp->lost when that began */
	u32 max_bw[2];			/* most of the previous and of this cycle, Q24 */
	u32 bw_latest;			/* most of the round of losses, Q24 */
	u32 inflight_latest;		/* most delivered in a round trip of it, packets */
	u32 bw_shortterm;		/* bound of the rate after losses */
	u32 inflight_shortterm;		/* bound of inflight after losses */
	u32 inflight_longterm;		/* inflight that a probe found to be safe */
	u32 full_bw;			/* rate that a round must exceed by 25 %, Q24 */
	u32 prior_cwnd;			/* cwnd before recovery or ProbeRTT */
	u32 aggregate_start;		/* when extra_acked's interval began, us, cut off */
	u32 aggregate;			/* packets acknowledged since */
	u16 extra_acked[2];		/* most beyond what bw explains; older, newer rounds */
	u32 probe_up_acked;		/* packets acknowledged since inflight_longterm grew */
	u32 undo_bw_shortterm;		/* before recovery */
	u32 undo_inflight_shortterm;	/* before recovery */
	u32 undo_inflight_longterm;	/* before recovery */
	u32 state:3,			/* enum bbr3_state */
	    undo_state:3,		/* to go back to: STARTUP or UP; DRAIN: none */
	    acks:3,			/* enum bbr3_acks */
	    round_start:1,		/* this ACK begins a round */
	    loss_round_start:1,		/* this ACK begins a round of losses */
	    loss_in_round:1,		/* a loss or a mark was seen in it */
	    mark_in_round:1,		/* a mark, or a drop on this host */
	    losses_in_round:3,		/* ACKs with losses, up to 7 */
	    full_bw_reached:1,		/* the pipe has been full once */
	    full_bw_now:1,		/* the pipe is full, in this probe */
	    full_bw_count:2,		/* rounds without growth */
	    idle_restart:1,		/* nothing was acknowledged since a pause */
	    probe_rtt_expired:1,	/* the 5 s are over */
	    probe_rtt_holds:1,		/* inflight has come down, and the 200 ms run */
	    probe_rtt_round_done:1,	/* a round of them is over */
	    probe_sample:1,		/* ACKs are of REFILL or UP, and none told of much loss */
	    probe_too_high:1,		/* the last probe lost too much */
	    probe_precautionary:1,	/* the last probe ended where that had */
	    recovering:1,		/* the stack was in recovery at the last ACK */
	    seen_rtt:1,			/* the first pacing rate is of a measured round trip */
	    drain_rounds:2;		/* rounds begun in Drain, up to 3 */
	u32 rounds_since_probe:6,	/* up to 63 */
	    probe_up_rounds:5,		/* rounds in which inflight_longterm grew, up to 30 */
	    probe_wait_ms:12,		/* from the start of a cycle to the next probe */
	    aggregate_rounds:3;		/* rounds in the newer slot of extra_acked */
};

static inline u32 bbr3_rate(u32 packets, u32 us)
{
	return min_t(u64, div_u64((u64)packets << BBR3_RATE_SHIFT, us), BBR3_INFINITE - 1);
}

static inline u32 bbr3_volume(u32 rate, u32 us, u32 gain)
{
	u64 volume = mul_u64_u32_shr((u64)rate * us, gain, BBR3_GAIN_SHIFT);

	return min_t(u64, (volume + (1 << BBR3_RATE_SHIFT) - 1) >> BBR3_RATE_SHIFT, S32_MAX);
}

/* The rate times the gain less PacingMarginPercent, 1 %, in bytes per second. */
static inline u64 bbr3_bytes_per_s(u32 rate, u32 gain, u32 packet_bytes)
{
	return mul_u64_u32_shr((u64)rate * packet_bytes, gain * (USEC_PER_SEC / 100 * 99),
			       BBR3_RATE_SHIFT + BBR3_GAIN_SHIFT);
}

/* 0.7, Beta, of a rate or of a volume. */
static inline u32 bbr3_beta(u32 value)
{
	return div_u64((u64)value * 7, 10);
}

static inline bool bbr3_too_high(u32 lost, u32 in_flight)
{
	return (u64)lost * BBR3_PACKETS_PER_LOSS > in_flight;
}

/*
 * Where losses crossed LossThresh among the newly lost packets, if `lost` of `in_flight` have been
 * lost with them: (before + x) / (in flight before + x) = 1/50, solved for x.
 */
static inline u32 bbr3_inflight_at_loss(u32 in_flight, u32 lost, u32 newly_lost)
{
	u32 sent_before = in_flight - min(in_flight, newly_lost);
	u64 lost_before = (u64)(lost - min(lost, newly_lost)) * BBR3_PACKETS_PER_LOSS;

	if (lost_before >= sent_before)
		return sent_before;
	return sent_before + (u32)(sent_before - lost_before) / (BBR3_PACKETS_PER_LOSS - 1);
}

/* inflight_longterm less Headroom, 15 % and at least a packet, for other flows. */
static inline u32 bbr3_with_headroom(u32 inflight_longterm)
{
	u32 headroom;

	if (inflight_longterm == BBR3_INFINITE)
		return BBR3_INFINITE;
	headroom = max_t(u32, div_u64((u64)inflight_longterm * 15, 100), 1);
	return max(inflight_longterm - min(inflight_longterm, headroom), BBR3_MIN_CWND);
}

static inline u32 bbr3_max_bw(const struct bbr3 *ca)
{
	return max(ca->max_bw[0], ca->max_bw[1]);
}

static inline u32 bbr3_bw(const struct bbr3 *ca)
{
	return min(bbr3_max_bw(ca), ca->bw_shortterm);
}

/* BDPMultiple() */
static inline u32 bbr3_bdp(const struct bbr3 *ca, u32 bw, u32 gain)
{
	return ca->min_rtt_us == U32_MAX ? TCP_INIT_CWND : bbr3_volume(bw, ca->min_rtt_us, gain);
}

static inline bool bbr3_in_probe_bw(const struct bbr3 *ca)
{
	return ca->state >= BBR3_DOWN && ca->state <= BBR3_UP;
}

static inline bool bbr3_is_probing(const struct bbr3 *ca)
{
	return ca->state == BBR3_STARTUP || ca->state == BBR3_REFILL || ca->state == BBR3_UP;
}

static inline u32 bbr3_probe_rtt_cwnd(const struct bbr3 *ca)
{
	return max(bbr3_bdp(ca, bbr3_bw(ca), bbr3_gains[BBR3_PROBE_RTT].cwnd), BBR3_MIN_CWND);
}

/* BoundCwndForModel() */
static inline u32 bbr3_cwnd_bound(const struct bbr3 *ca)
{
	u32 bound = BBR3_INFINITE;

	if (ca->state == BBR3_PROBE_RTT || ca->state == BBR3_CRUISE)
		bound = bbr3_with_headroom(ca->inflight_longterm);
	else if (bbr3_in_probe_bw(ca))
		bound = ca->inflight_longterm;
	return max(min(bound, ca->inflight_shortterm), BBR3_MIN_CWND);
}

static inline void bbr3_reset_full_bw(struct bbr3 *ca, u32 bw)
{
	ca->full_bw = bw;
	ca->full_bw_count = 0;
	ca->full_bw_now = 0;
}

static inline void bbr3_reset_shortterm(struct bbr3 *ca)
{
	ca->bw_shortterm = BBR3_INFINITE;
	ca->inflight_shortterm = BBR3_INFINITE;
}

#endif /* BBR3_MODEL_H */
