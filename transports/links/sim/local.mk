# The simulated network and the simulated service on it: for tests, never in the provider.
check_LTLIBRARIES += librwk_sim.la
librwk_sim_la_SOURCES = \
	transports/links/sim/sim.c transports/links/sim/sim.h \
	transports/links/sim/service.c transports/links/sim/service.h \
	transports/links/sim/network.h \
	transports/links/sim/events.c \
	transports/links/sim/path.c \
	transports/links/sim/internal.h \
	transports/links/sim/port.c \
	transports/links/sim/flow.c \
	transports/links/sim/record.c
