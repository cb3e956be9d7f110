# The TCP link.
libropewalk_core_la_SOURCES += \
	transports/links/tcp/tcp.c transports/links/tcp/tcp.h \
	transports/links/tcp/internal.h \
	transports/links/tcp/meet.c \
	transports/links/tcp/carry.c \
	transports/links/tcp/socket.c \
	transports/links/tcp/hello.c transports/links/tcp/hello.h
