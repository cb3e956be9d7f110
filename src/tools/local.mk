# What src/tools adds to the build.
noinst_LTLIBRARIES += librwk_text.la
librwk_text_la_SOURCES = src/tools/text.c src/tools/text.h

bin_PROGRAMS += rwk_info
rwk_info_SOURCES = src/tools/rwk_info.c src/tools/info.h \
	src/tools/attach.c src/tools/attach.h \
	src/tools/doc.c src/tools/doc.h \
	src/tools/info_devices.c \
	src/tools/info_drawing.c \
	src/tools/info_job.c \
	src/tools/info_map.c \
	src/tools/info_parameters.c \
	src/tools/info_process.c
rwk_info_LDADD = librwk_text.la libropewalk-core.la
dist_man_MANS += contrib/man/rwk_info.1

# How two programs on ropewalk.h find each other: rwk_pingpong, the benchmarks, the examples. They have none of the core,
# so what is used of it is compiled again.
noinst_LTLIBRARIES += librwk_meet.la
librwk_meet_la_SOURCES = src/tools/meet.c src/tools/meet.h src/tools/place.c src/base/socket.c src/base/socket.h
librwk_meet_la_LIBADD = librwk_text.la

# On ropewalk.h alone, as any other program.
bin_PROGRAMS += rwk_pingpong
rwk_pingpong_SOURCES = src/tools/rwk_pingpong.c src/tools/rwk_pingpong.h src/tools/rwk_pingpong_end.c \
	src/tools/rwk_pingpong_options.c
rwk_pingpong_LDADD = librwk_meet.la libropewalk.la
dist_man_MANS += contrib/man/rwk_pingpong.1
