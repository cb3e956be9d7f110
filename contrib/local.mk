# What contrib adds to the build: parameter files, the pkg-config file, man pages and the example.
pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = contrib/ropewalk.pc

openmpidir = $(pkgdatadir)/openmpi
openmpi_DATA = contrib/openmpi/ropewalk.conf
noinst_DATA += contrib/openmpi/uninstalled.conf
CLEANFILES += $(pkgconfig_DATA) $(openmpi_DATA) $(noinst_DATA)

# Made here and not by configure: only make knows what providerdir expands to, and which prefix it was called with. In the
# pkg-config file the other folders stay below that prefix, as they do in the Makefile.
pkgconfig_folders = exec_prefix libdir includedir datarootdir datadir providerdir
contrib/ropewalk.pc: contrib/ropewalk.pc.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && { \
		printf '%s\n' 'prefix=$(prefix)' $(foreach f,$(pkgconfig_folders),'$(f)=$(value $(f))') && \
		sed 's|@package@|$(PACKAGE)|; s|@version@|$(VERSION)|' $(srcdir)/contrib/ropewalk.pc.in; } > $@
contrib/openmpi/ropewalk.conf: contrib/openmpi/ropewalk.conf.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && sed 's|@dir@|$(providerdir)|' $(srcdir)/contrib/openmpi/ropewalk.conf.in > $@
contrib/openmpi/uninstalled.conf: contrib/openmpi/ropewalk.conf.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
		sed 's|@dir@|$(abs_builddir)/.libs|' $(srcdir)/contrib/openmpi/ropewalk.conf.in > $@

EXTRA_DIST += \
	contrib/check contrib/coverage contrib/lib.sh contrib/quickstart contrib/virtual-hosts \
	contrib/hacking.md contrib/dependencies.md \
	contrib/debian contrib/ropewalk.spec contrib/release.md contrib/spack \
	contrib/interop-rxe \
	contrib/ropewalk.pc.in \
	contrib/openmpi/README.md contrib/openmpi/ropewalk.conf.in contrib/openshmem/README.md contrib/mpich/README.md \
	contrib/gasnet/README.md contrib/charm/README.md contrib/lci/README.md contrib/oneccl/README.md

if HAVE_MPI
check_PROGRAMS += contrib/examples/ring_pingpong
contrib_examples_ring_pingpong_SOURCES = contrib/examples/ring_pingpong.c
contrib_examples_ring_pingpong_CFLAGS = $(RWK_WARNINGS) $(MPI_CFLAGS)
contrib_examples_ring_pingpong_LDFLAGS =
contrib_examples_ring_pingpong_LDADD = $(MPI_LIBS)
endif

# Programs on ropewalk.h.
examples_node = contrib/examples/node.c contrib/examples/node.h
examples_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/src/include
examples_LDADD = libropewalk.la
check_PROGRAMS += contrib/examples/disk_read contrib/examples/key_value
contrib_examples_disk_read_SOURCES = contrib/examples/disk_read.c $(examples_node)
contrib_examples_disk_read_CPPFLAGS = $(examples_CPPFLAGS)
contrib_examples_disk_read_LDADD = $(examples_LDADD)
contrib_examples_key_value_SOURCES = contrib/examples/key_value.c $(examples_node)
contrib_examples_key_value_CPPFLAGS = $(examples_CPPFLAGS)
contrib_examples_key_value_LDADD = $(examples_LDADD)

dist_man_MANS += contrib/man/fi_ropewalk.7

# The pages of section 3 are the comments of ropewalk.h. Which there are only the generator knows.
man_pages = contrib/man/section3.stamp
$(man_pages): src/include/ropewalk.h contrib/man/from_header
	$(AM_V_GEN)rm -rf contrib/man/section3 && $(MKDIR_P) contrib/man/section3 && \
		$(AWK) -f $(srcdir)/contrib/man/from_header -v out=contrib/man/section3 \
			$(srcdir)/src/include/ropewalk.h && touch $@
noinst_DATA += $(man_pages)
CLEANFILES += contrib/man/section3/*.3
EXTRA_DIST += contrib/man/from_header

install-data-local: $(man_pages)
	$(MKDIR_P) "$(DESTDIR)$(mandir)/man3" && \
		$(INSTALL_DATA) contrib/man/section3/*.3 "$(DESTDIR)$(mandir)/man3"

uninstall-local: $(man_pages)
	$(am__cd) contrib/man/section3 && for page in *.3; do rm -f "$(DESTDIR)$(mandir)/man3/$$page"; done

# Lines of protocol code that the unit tests do not reach; in a build of its own.
coverage:
	BUILD="$(abs_builddir)/coverage" $(srcdir)/contrib/coverage
.PHONY: coverage
