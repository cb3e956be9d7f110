# The connection layer, above the channel adapter.
libropewalk_core_la_SOURCES += \
	src/connect/agree.c \
	src/connect/calls.c \
	src/connect/channel.c \
	src/connect/connection.c \
	src/connect/internal.h \
	src/connect/listener.c \
	src/connect/message.c src/connect/message.h
EXTRA_DIST += src/connect/CONNECT.md
