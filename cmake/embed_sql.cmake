# cmake -DOUT=file.cc -DDIRECTORY=dir -P embed_sql.cmake: the files NNN_*.sql as migrations of the library.
file(GLOB files ${DIRECTORY}/*.sql)
list(SORT files)
set(entries "")
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME_WE)
  string(REGEX MATCH "^[0-9]+" number ${name})
  math(EXPR version "1${number} - 1000")  # the leading zeros would make it octal
  file(READ ${file} text)
  string(APPEND entries "    {${version}, \"${name}\", R\"baton_sql(${text})baton_sql\"},\n")
endforeach()
file(WRITE ${OUT} "#include \"postgres/migrations.h\"

namespace baton::postgres {
namespace {

constexpr Migration kMigrations[] = {
${entries}};

}  // namespace

std::span<const Migration> migrations() { return kMigrations; }

}  // namespace baton::postgres
")
