# Debian packages: `baton`, the program and its service, `libbaton-dev`, the libraries, and `python3-baton`. `./dev package`
# makes them from the preset `package`, whose prefix is /usr.

# Debian wants pages compressed, without a time in them.
find_program(GZIP gzip)
function(install_compressed file name folder component)
  set(compressed ${CMAKE_CURRENT_BINARY_DIR}/packaging/${component}/${name}.gz)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/packaging/${component})
  execute_process(COMMAND ${GZIP} -9nc ${file} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_FILE ${compressed})
  install(FILES ${compressed} DESTINATION ${folder} COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

if(GZIP)
  foreach(pair service:baton pages:libbaton-dev python:python3-baton)
    string(REGEX MATCH "^(.*):(.*)$" _ ${pair})
    set(component ${CMAKE_MATCH_1})
    set(folder share/doc/${CMAKE_MATCH_2})
    install(FILES packaging/debian/copyright DESTINATION ${folder} COMPONENT ${component} EXCLUDE_FROM_ALL)
    install_compressed(CHANGELOG.md changelog ${folder} ${component})
    install_compressed(packaging/debian/changelog changelog.Debian ${folder} ${component})
  endforeach()
  install_compressed(README.md README.md share/doc/baton service)
endif()
install(FILES packaging/baton.service DESTINATION /lib/systemd/system COMPONENT service EXCLUDE_FROM_ALL)
install(FILES packaging/baton.default DESTINATION /etc/default RENAME baton COMPONENT service EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_SET_DESTDIR ON)  # not everything lies below the prefix
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/compress_manual.cmake)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_PACKAGE_CONTACT "The baton maintainers <maintainers@baton.example.org>")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_COMPONENTS_ALL program service development pages)
if(TARGET baton_python)
  list(APPEND CPACK_COMPONENTS_ALL python)
endif()
set(CPACK_COMPONENT_PROGRAM_GROUP program)
set(CPACK_COMPONENT_SERVICE_GROUP program)
set(CPACK_COMPONENT_DEVELOPMENT_GROUP development)
set(CPACK_COMPONENT_PAGES_GROUP development)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME baton)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "coordinator for work on machines that may die at any moment
Tasks are leased to workers for a limited time; a worker that dies loses its
lease and somebody else gets the task; no task is ever completed twice.
Everything is in one durable log before anybody hears of it. Served over the
Redis protocol and HTTP.")
foreach(script postinst prerm postrm conffiles)
  list(APPEND CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/debian/${script})
endforeach()

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libbaton-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libisal-dev, libxxhash-dev, libboost1.81-dev, libfmt-dev, libpq-dev")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "coordinator for work on machines that may die at any moment - library
Headers and libraries for C++ programs: a client and worker of a baton
server, the engine itself, on a data directory and without a server, and
ordered streams of messages on PostgreSQL.")

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-baton)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.11), python3 (<< 3.12), python3-numpy")  # the extension is for one Python
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/debian/python/postinst
                                              ${PROJECT_SOURCE_DIR}/packaging/debian/python/prerm)
set(CPACK_DEBIAN_PYTHON_DESCRIPTION "coordinator for work on machines that may die at any moment - Python
Saves and loads the states of training jobs, of numpy and torch, alone or by
many ranks together, and hands in and works off tasks of a baton server.")
include(CPack)
