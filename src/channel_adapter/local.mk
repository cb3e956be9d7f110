# What src/channel_adapter adds to the build: the adapter, and the library that programs on ropewalk.h are linked with,
# which exports what that header declares.
libropewalk_core_la_SOURCES += \
	src/channel_adapter/adapter.c \
	src/channel_adapter/cq.c src/channel_adapter/cq.h \
	src/channel_adapter/early.c \
	src/channel_adapter/event.c \
	src/channel_adapter/internal.h \
	src/channel_adapter/object.c src/channel_adapter/object.h \
	src/channel_adapter/packet.c \
	src/channel_adapter/post.c \
	src/channel_adapter/qp.c \
	src/channel_adapter/receive.c \
	src/channel_adapter/sleep.c \
	src/channel_adapter/srq.c \
	src/channel_adapter/stream.c src/channel_adapter/stream.h \
	src/channel_adapter/upcalls.c \
	src/channel_adapter/window.c \
	src/include/ropewalk.h

include_HEADERS += src/include/ropewalk.h
lib_LTLIBRARIES += libropewalk.la
libropewalk_la_SOURCES =
libropewalk_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined -Wl,--as-needed \
	-Wl,--version-script=$(srcdir)/src/channel_adapter/libropewalk.map
libropewalk_la_DEPENDENCIES = libropewalk-core.la src/channel_adapter/libropewalk.map
EXTRA_DIST += src/channel_adapter/libropewalk.map
libropewalk_la_LIBADD = libropewalk-core.la -lpthread
