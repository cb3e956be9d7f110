libropewalk_core_la_SOURCES += \
	src/base/barrier.h \
	src/base/bell.h \
	src/base/cancel.h \
	src/base/clock.h \
	src/base/compiler.h \
	src/base/copy.c src/base/copy.h \
	src/base/crowd.c src/base/crowd.h \
	src/base/demote.h \
	src/base/forked.c src/base/forked.h \
	src/base/hash_table.c src/base/hash_table.h \
	src/base/interfaces.c src/base/interfaces.h \
	src/base/iov.c src/base/iov.h \
	src/base/keyed.h \
	src/base/list.h \
	src/base/log.c src/base/log.h \
	src/base/nap.h \
	src/base/param.c src/base/param.h \
	src/base/pool.c src/base/pool.h \
	src/base/process.c src/base/process.h src/base/call_if.c src/base/call_if.h \
	src/base/random.h \
	src/base/shared.c src/base/shared.h \
	src/base/socket.c src/base/socket.h \
	src/base/spares.c src/base/spares.h \
	src/base/this_process.c src/base/this_process.h
