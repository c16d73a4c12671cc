create table clock (id int primary key check (id = 1), t int not null);
create table concept (
  name text primary key,
  context text not null default '',
  t_index int not null,
  revision_count int not null default 0
);
create table related (
  a text not null references concept (name),
  b text not null references concept (name),
  strength int not null default 1,
  t_index int not null,
  primary key (a, b)
);

create property graph knowledge
  vertex tables (concept label Concept)
  edge tables (
    related
      source key (a) references concept (name)
      destination key (b) references concept (name)
      label RELATED
  );
