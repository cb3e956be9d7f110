/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The job map as a drawing: each node a box, each rank a square in it, coloured by what would carry this process's
 * messages to it. Ranks whose node is not known have a box to themselves. The places are worked out in one pass over
 * the ranks: a box is as high as its ranks need, a row of boxes as high as its highest.
 */
#include "selection/selection.h"
#include "tools/info.h"

#include <inttypes.h>

enum {
	NODES = 64,  /* boxes that are drawn, */
	RANKS = 128, /* and ranks in each; of the rest the number is told */
	ACROSS = 8,  /* squares a line, */
	BOXES = 4,   /* boxes a row */
	SIDE = 26,   /* of a square with its gap */
	HEAD = 22,   /* of a box */
	GAP = 16,
	BOX = ACROSS * SIDE + 12,
	LEGEND = 20,
};

struct box {
	uint32_t node;
	uint32_t ranks;        /* in all, */
	uint32_t first[RANKS]; /* the numbers of those that are drawn */
};

struct drawing {
	const struct rwk_job_map *map;
	uint32_t boxes, more; /* more: ranks on nodes that have no box */
	struct box box[NODES];
	struct rwk_sel_choice here, there;
};

static const char *const colour[RWK_STRAND_COUNT + 1] = {
	[RWK_STRAND_SELF] = "#d1495b",
	[RWK_STRAND_UC_SHM] = "#66a182",
	[RWK_STRAND_RC_UDP] = "#4f8fc0",
	[RWK_STRAND_SRC_UDP] = "#8e6fb5",
	[RWK_STRAND_UC_TCP] = "#edae49",
	[RWK_STRAND_NONE] = "#999999",
};

static struct box *box_of(struct drawing *g, uint32_t node)
{
	for (uint32_t i = g->boxes; i-- > 0;) {
		if (g->box[i].node == node)
			return &g->box[i];
	}
	if (g->boxes == NODES)
		return NULL;
	g->box[g->boxes].node = node;
	return &g->box[g->boxes++];
}

static void place_ranks(struct drawing *g)
{
	for (uint32_t r = 0; r < g->map->size; r++) {
		struct box *b = box_of(g, rwk_job_map_node_of(g->map, r));

		if (!b) {
			g->more++;
			continue;
		}
		if (b->ranks < RANKS)
			b->first[b->ranks] = r;
		b->ranks++;
	}
}

static void choose(struct drawing *g)
{
	struct rwk_sel_facts f;

	rwk_sel_facts_init(&f, g->map, &rwk_params);
	f.udp = rwk_params.udp;
	f.tcp = rwk_params.tcp;
	f.node = RWK_SEL_CLAIMED;
	rwk_sel_choose(&f, &g->here);
	f.node = RWK_SEL_OTHER;
	rwk_sel_choose(&f, &g->there);
}

static enum rwk_strand strand_of(const struct drawing *g, uint32_t rank)
{
	if (g->map->rank == RWK_RANK_NONE)
		return RWK_STRAND_NONE;
	switch (rwk_job_map_where(g->map, rank)) {
	case RWK_WHERE_SELF:
		return RWK_STRAND_SELF;
	case RWK_WHERE_NODE:
		return g->here.strand;
	case RWK_WHERE_OTHER:
		return g->there.strand;
	default:
		return RWK_STRAND_NONE;
	}
}

static unsigned height_of(const struct box *b)
{
	unsigned drawn = b->ranks < RANKS ? b->ranks : RANKS;

	return HEAD + (drawn + ACROSS - 1) / ACROSS * SIDE + 10;
}

static unsigned row_height(const struct drawing *g, uint32_t row)
{
	unsigned most = 0;

	for (uint32_t i = row * BOXES; i < g->boxes && i < (row + 1) * BOXES; i++)
		most = height_of(&g->box[i]) > most ? height_of(&g->box[i]) : most;
	return most;
}

static void draw_box(const struct drawing *g, const struct box *b, unsigned x, unsigned y, FILE *to)
{
	fprintf(to, "<g class=\"node\"><rect x=\"%u\" y=\"%u\" width=\"%d\" height=\"%u\" rx=\"5\" fill=\"#f6f6f4\" "
		    "stroke=\"#888\"/><text x=\"%u\" y=\"%u\">",
		x, y, BOX, height_of(b), x + 8, y + 15);
	if (b->node == RWK_NODE_NONE)
		fprintf(to, "node not known");
	else
		fprintf(to, "node %u%s", b->node, b->node == g->map->node ? " (this one)" : "");
	fprintf(to, ": %u rank%s%s</text>\n", b->ranks, b->ranks == 1 ? "" : "s",
		b->ranks > RANKS ? ", not all drawn" : "");
	for (uint32_t i = 0; i < b->ranks && i < RANKS; i++) {
		unsigned sx = x + 6 + i % ACROSS * SIDE, sy = y + HEAD + i / ACROSS * SIDE;

		fprintf(to,
			"<rect class=\"rank\" x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" rx=\"3\" fill=\"%s\"/>"
			"<text x=\"%u\" y=\"%u\" text-anchor=\"middle\" font-size=\"9\" fill=\"#fff\">%u</text>\n",
			sx, sy, SIDE - 3, SIDE - 3, colour[strand_of(g, b->first[i])], sx + (SIDE - 3) / 2, sy + 15,
			b->first[i]);
	}
	fprintf(to, "</g>\n");
}

static void draw_legend(const struct drawing *g, unsigned y, FILE *to)
{
	unsigned x = GAP;

	for (enum rwk_strand s = 0; s <= RWK_STRAND_COUNT; s++) {
		bool used = s == RWK_STRAND_SELF || s == g->here.strand || s == g->there.strand ||
			    (s == RWK_STRAND_NONE && !g->map->nodes_exact);

		if (!used && g->map->rank != RWK_RANK_NONE)
			continue;
		if (g->map->rank == RWK_RANK_NONE && s != RWK_STRAND_NONE)
			continue;
		fprintf(to,
			"<rect x=\"%u\" y=\"%u\" width=\"12\" height=\"12\" rx=\"2\" fill=\"%s\"/><text x=\"%u\" "
			"y=\"%u\">%s</text>\n",
			x, y, colour[s], x + 17, y + 10,
			s == RWK_STRAND_NONE   ? "not known"
			: s == RWK_STRAND_SELF ? "this process"
					       : rwk_strand_text(s));
		x += 110;
	}
}

static void draw(const struct drawing *g, FILE *to)
{
	uint32_t rows = (g->boxes + BOXES - 1) / BOXES, across = g->boxes < BOXES ? g->boxes : BOXES;
	unsigned y = 2 * GAP + 8, height = y + GAP + LEGEND + (g->more ? LEGEND : 0);
	unsigned width = GAP + across * (BOX + GAP) < 460 ? 460 : GAP + across * (BOX + GAP);

	for (uint32_t row = 0; row < rows; row++)
		height += row_height(g, row) + GAP;
	fprintf(to,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" font-family=\"sans-serif\" "
		"font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		width, height);
	fprintf(to, "<text x=\"%d\" y=\"24\" font-size=\"13\">%u rank%s on %s%u node%s, as told by: %s</text>\n", GAP,
		g->map->size, g->map->size == 1 ? "" : "s", g->map->nodes_exact ? "" : "about ", g->map->nodes,
		g->map->nodes == 1 ? "" : "s", rwk_job_source_text(g->map->source));
	for (uint32_t row = 0; row < rows; row++) {
		for (uint32_t i = row * BOXES; i < g->boxes && i < (row + 1) * BOXES; i++)
			draw_box(g, &g->box[i], GAP + i % BOXES * (BOX + GAP), y, to);
		y += row_height(g, row) + GAP;
	}
	draw_legend(g, y, to);
	if (g->more)
		fprintf(to, "<text x=\"%d\" y=\"%u\">and %u ranks on nodes that are not drawn</text>\n", GAP,
			y + LEGEND + 14, g->more);
	fprintf(to, "</svg>\n");
}

void rwk_info_draw(const struct rwk_job_map *map, FILE *to)
{
	struct drawing g = {.map = map};

	choose(&g);
	place_ranks(&g);
	draw(&g, to);
}
