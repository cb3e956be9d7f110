# The link on UDP sockets.
libropewalk_core_la_SOURCES += \
	transports/links/udp/internal.h \
	transports/links/udp/line.c \
	transports/links/udp/own_ip.c \
	transports/links/udp/pseudo.c \
	transports/links/udp/receive.c \
	transports/links/udp/route.c \
	transports/links/udp/send.c \
	transports/links/udp/udp.c transports/links/udp/udp.h
