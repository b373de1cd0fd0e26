# What `cmake --install` puts where: the program, and for C++ programs the libraries with their headers, a package
# for find_package(baton) and files for pkg-config.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS baton RUNTIME COMPONENT program)

# The man page and what shells complete are the program's own words, and there as soon as it is.
set(baton_documents ${CMAKE_BINARY_DIR}/documents)
add_custom_command(TARGET baton POST_BUILD
                   COMMAND ${CMAKE_COMMAND} -E make_directory ${baton_documents}
                   COMMAND baton man > ${baton_documents}/baton.1
                   COMMAND baton completion bash > ${baton_documents}/baton
                   COMMAND baton completion zsh > ${baton_documents}/_baton
                   COMMAND baton completion fish > ${baton_documents}/baton.fish
                   VERBATIM)
install(FILES ${baton_documents}/baton.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
install(FILES ${baton_documents}/baton DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT program)
install(FILES ${baton_documents}/_baton DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT program)
install(FILES ${baton_documents}/baton.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)

# Sets, so that a client's program needs neither Boost nor fmt nor libpq.
set(baton_package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/baton)
# From where a file for pkg-config lies to the prefix, whatever that is: `cmake --install --prefix` may choose another.
file(RELATIVE_PATH baton_pc_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
set(baton_client_libraries base wire stream client)
set(baton_engine_libraries core log engine)
set(baton_streams_libraries postgres publish)
set(baton_pipeline_libraries process pipeline)
set(baton_checkpoint_libraries group checkpoint)
foreach(set client engine streams pipeline checkpoint)
  foreach(name ${baton_${set}_libraries})
    set_target_properties(baton_${name} PROPERTIES EXPORT_NAME ${name})
    install(TARGETS baton_${name} EXPORT baton_${set} ARCHIVE COMPONENT development)
  endforeach()
  install(EXPORT baton_${set} NAMESPACE baton:: FILE baton-${set}-targets.cmake
          DESTINATION ${baton_package_directory} COMPONENT development)
  configure_file(cmake/baton-${set}.pc.in baton-${set}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/baton-${set}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
          COMPONENT development)
endforeach()

# A client's internals stay at home; the engine's face is made of most of what is behind it.
install(FILES src/client/address.h src/client/client.h src/client/http_call.h src/client/types.h
              src/client/work_coordinator.h src/client/worker.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/baton/client COMPONENT development)
install(FILES src/wire/resp_value.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/baton/wire COMPONENT development)
install(FILES src/publish/destination.h src/publish/stream_sink.h src/publish/task_sink.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/baton/publish COMPONENT development)
install(FILES src/postgres/arguments.h src/postgres/connection.h src/postgres/migrations.h src/postgres/transaction.h
              src/postgres/work_coordinator.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/baton/postgres COMPONENT development)
foreach(folder base stream core log engine process group pipeline checkpoint)
  install(DIRECTORY src/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/baton COMPONENT development
          FILES_MATCHING PATTERN "*.h"
          PATTERN "testing.h" EXCLUDE PATTERN "*_simulation.h" EXCLUDE  # those are for tests
          PATTERN "slice_digests.h" EXCLUDE)  # needs what is not installed
endforeach()

configure_package_config_file(cmake/baton-config.cmake.in baton-config.cmake
                              INSTALL_DESTINATION ${baton_package_directory})
write_basic_package_version_file(baton-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/baton-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/baton-config-version.cmake
        DESTINATION ${baton_package_directory} COMPONENT development)
