-- A fruit shop: who delivers, who buys, what is on the shelf, what was bought and sold

create table suppliers (
  supplier_id int primary key generated always as identity,
  supplier_name text not null unique,
  contact_number text,
  email text
);
create table customers (
  customer_id int primary key generated always as identity,
  customer_name text not null,
  phone_number text not null unique,
  email text
);
create table fruits (
  fruit_id int primary key generated always as identity,
  fruit_name text not null unique,
  selling_price decimal(10,2) check (selling_price > 0),
  stock_quantity int not null default 0 check (stock_quantity >= 0)
);
create table purchases (
  purchase_id int primary key generated always as identity,
  supplier_id int not null references suppliers (supplier_id),
  purchase_date date not null,
  total_cost decimal(10,2) not null check (total_cost >= 0)
);
create table purchase_items (
  purchase_id int not null references purchases (purchase_id),
  fruit_id int not null references fruits (fruit_id),
  quantity_purchased int not null check (quantity_purchased > 0),
  cost_per_item decimal(10,2) not null check (cost_per_item >= 0),
  item_total_cost decimal(10,2) not null,
  primary key (purchase_id, fruit_id)
);
create table sales (
  sale_id int primary key generated always as identity,
  customer_id int not null references customers (customer_id),
  sale_date date not null,
  total_price decimal(10,2) not null check (total_price > 0)
);
create table sale_items (
  sale_id int not null references sales (sale_id),
  fruit_id int not null references fruits (fruit_id),
  quantity_sold int not null check (quantity_sold > 0),
  price_per_item decimal(10,2) not null check (price_per_item > 0),
  item_total_price decimal(10,2) not null,
  primary key (sale_id, fruit_id)
);
